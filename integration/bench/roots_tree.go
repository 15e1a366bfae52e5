package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// path of a file of the tree.
func (t rootsTree) path(i int) string { return fmt.Sprintf("d%d/e%d/f%d", i%10, i%100, i) }

// make fills a directory. The same round has the same content, and no other round has any of it.
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
	_, err = io.CopyBuffer(struct{ io.Writer }{f}, io.LimitReader(rand.NewChaCha8(seed), int64(size)), make([]byte, min(size, 1<<20)))
	return errors.Join(err, f.Close())
}

// emptyDir makes a directory that is there and empty.
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

// sameTree says how two directories differ, byte by byte.
func sameTree(a, b string) error {
	count := 0
	err := filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		count++
		return sameFile(path, filepath.Join(b, strings.TrimPrefix(path, a)))
	})
	if err != nil {
		return err
	}
	return filepath.WalkDir(b, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if count--; count < 0 {
				return fmt.Errorf("%s is too much", path)
			}
		}
		return err
	})
}

func sameFile(a, b string) error {
	x, err := os.Open(a)
	if err != nil {
		return err
	}
	defer x.Close()
	y, err := os.Open(b)
	if err != nil {
		return err
	}
	defer y.Close()
	p, q := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := io.ReadFull(x, p)
		m, _ := io.ReadFull(y, q)
		switch {
		case !bytes.Equal(p[:n], q[:m]):
			return fmt.Errorf("%s and %s differ", a, b)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
