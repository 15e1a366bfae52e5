package localmaster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestLineOfAMistake(t *testing.T) {
	for text, line := range map[string]string{
		"a: 1\nb: {c: [d}\n":       "line 2: ",
		"a: 1\nx: 1\ny: [\n":       "line 4: ", // the end of the file, as Salt says it
		"x: 1\ny:\n  - 1\n z: 2\n": "line 4: ",
		"a: 1\n b: 2\n":            "line 2: ",
		"a: 1\nq: @x\n":            "line 2: ",
	} {
		path := filepath.Join(t.TempDir(), "master")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := LoadConfig(path, Version{Major: 3008}); err == nil || !strings.Contains(err.Error(), line) {
			t.Errorf("%q: %v, want %s", text, err, line)
		}
	}
}

func FuzzParseYAML(f *testing.F) {
	f.Add("a: &x [1, on, {b: 0x1f}]\nc: *x\n<<: {d: 1:30}\n")
	f.Add("a: &a\n  <<: *a\n")
	f.Add("? [x]\n: y\n")
	f.Fuzz(func(t *testing.T, in string) {
		if len(in) < 1<<12 {
			_, _ = parseYAML([]byte(in))
		}
	})
}
