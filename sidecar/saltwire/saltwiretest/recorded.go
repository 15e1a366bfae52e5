// Package saltwiretest reads what stock daemons of three versions sent (sidecar/saltwire/testdata/golden), for corpora
// of fuzz targets.
package saltwiretest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Recording is the traffic of one version.
type Recording struct {
	Auth, Requests []struct{ Request []byte }
	Publications   []struct{ Body []byte }
	Bus            struct{ Stream, Push []byte }
}

// Recorded reads all recordings; saltwire is where that package is, seen from the test.
func Recorded(t testing.TB, saltwire string) []Recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(saltwire, "testdata/golden/*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("recorded traffic: %v, %v", files, err)
	}
	all := make([]Recording, len(files))
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &all[i]); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return all
}
