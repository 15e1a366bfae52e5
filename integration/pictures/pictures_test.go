package pictures

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "make the pictures anew")

// The pictures are those of their texts, and XML.
func TestDraw_PicturesAreCurrent(t *testing.T) {
	texts, err := filepath.Glob("../../docs/images/*.txt")
	if err != nil || len(texts) == 0 {
		t.Fatal(texts, err)
	}
	for _, path := range texts {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		want, err := Draw(string(text))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		picture := strings.TrimSuffix(path, ".txt") + ".svg"
		if *update {
			require.NoError(t, os.WriteFile(picture, want, 0o644))
		}
		if have, err := os.ReadFile(picture); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not that of its text (%v): go test ./integration/pictures -update", picture, err)
		}
		for d := xml.NewDecoder(bytes.NewReader(want)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", picture, err)
			}
		}
	}
}

func TestDraw_Refuses(t *testing.T) {
	for _, text := range []string{
		"", "box a 0,0 A", "title T\nbox a A", "title T\nbox a x,0 A", "title T\narrow a b", "title T\nstep now", "title T\nline a b",
		"title T\ngroup 0,0",
	} {
		if _, err := Draw(text); err == nil {
			t.Errorf("%q is drawn", text)
		}
	}
}
