package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
)

// rootsTree is a tree of files of one size.
type rootsTree struct {
	name        string
	files, size int
	edited      bool // checks and edits of it are measured as well
}

// path of a file of the tree.
func (t rootsTree) path(i int) string { return fmt.Sprintf("d%d/e%d/f%d", i%10, i%100, i) }

// make fills a directory. The same round has the same content, other rounds have none of it.
func (t rootsTree) make(dir string, round int) error {
	for i := range t.files {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], uint64(round)<<32|uint64(i))
		binary.LittleEndian.PutUint64(seed[8:], uint64(t.size))
		path := filepath.Join(dir, t.path(i))
		if i < 100 {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
		}
		if err := writeNoise(path, seed, t.size); err != nil {
			return err
		}
	}
	return nil
}

func writeNoise(path string, seed [32]byte, size int) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	noise := io.LimitReader(rand.NewChaCha8(seed), int64(size))
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, noise, make([]byte, min(size, 1<<20)))
	return errors.Join(err, f.Close())
}

// emptyDir makes a directory, or removes what is in it.
func emptyDir(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(dir, 0o755)
	}
	for _, n := range names {
		if err := os.RemoveAll(filepath.Join(dir, n.Name())); err != nil {
			return err
		}
	}
	return err
}

// sameTree returns how two directories of regular files differ.
func sameTree(a, b string) error {
	out, err := exec.Command("diff", "-rq", a, b).CombinedOutput()
	if err != nil {
		return fmt.Errorf("trees differ: %w: %.500s", err, out)
	}
	return nil
}
