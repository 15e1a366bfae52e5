package corpus

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"saltclusterd/integration/lab"
)

// dir is where the corpus is.
func dir() string { return filepath.Join(lab.ModuleRoot(), "integration", "corpus", "testdata") }

// Corpus is what a minion of a version asked.
type Corpus struct {
	Version  string    `json:"version"`
	ID       string    `json:"id"` // of the minion
	Requests []Request `json:"requests"`
}

// Request is one of them.
type Request struct {
	Cmd  string `json:"cmd"`
	Load []byte `json:"load"` // msgpack

	Mutation Mutation `json:"-"` // of a mutant: how it was made
}

// String is for people.
func (r Request) String() string {
	if r.Mutation == (Mutation{}) {
		return fmt.Sprintf("%s %.200q", r.Cmd, r.Load)
	}
	return fmt.Sprintf("%s, %s: %.200q", r.Cmd, r.Mutation, r.Load)
}

// Load returns what a minion of a version asked.
func Load(version string) (*Corpus, error) { return load(version) }

// LoadSyndic returns what a syndic of a version asked, whose master was the bottom of two.
func LoadSyndic(version string) (*Corpus, error) { return load(version + ".syndic") }

func load(version string) (*Corpus, error) {
	f, err := os.Open(filepath.Join(dir(), version+".json.gz"))
	if err != nil {
		return nil, fmt.Errorf("corpus: %w", err)
	}
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("corpus of %s: %w", version, err)
	}
	text, err := io.ReadAll(packed)
	c := &Corpus{}
	if err == nil {
		err = json.Unmarshal(text, c)
	}
	if err == nil && len(c.Requests) == 0 {
		err = errors.New("no requests")
	}
	if err != nil {
		return nil, fmt.Errorf("corpus of %s: %w", version, err)
	}
	return c, nil
}

// Roots copies the roots and pillars of the corpus into a directory, and returns the master's options for them.
func Roots(to string) (lab.Settings, error) {
	if out, err := exec.Command("cp", "-a", filepath.Join(dir(), "roots"), filepath.Join(dir(), "dev"),
		filepath.Join(dir(), "pillar"), to).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("roots of the corpus: %w: %s", err, out)
	}
	var large strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&large, "line %06d of a file that takes two chunks\n", i)
	}
	if err := os.WriteFile(filepath.Join(to, "roots", "large.txt"), []byte(large.String()), 0o644); err != nil {
		return nil, fmt.Errorf("roots of the corpus: %w", err)
	}
	return lab.Settings{
		"file_roots":   map[string][]string{"base": {filepath.Join(to, "roots")}, "dev": {filepath.Join(to, "dev")}},
		"file_recv":    true,
		"pillar_roots": map[string][]string{"base": {filepath.Join(to, "pillar")}},
		"peer":         map[string][]string{".*": {"test.*"}},
	}, nil
}
