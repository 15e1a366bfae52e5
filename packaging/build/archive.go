package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeArchive makes the tar.gz: what is in the deb, below a directory of its own.
func writeArchive(path, top, stage string, items []item, epoch time.Time) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	z, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	items = slices.Clone(items)
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.Dst, b.Dst) })
	for _, i := range items {
		if i.Packager == "rpm" {
			continue
		}
		if err := writeItem(t, top, stage, i, epoch); err != nil {
			return fmt.Errorf("%s: %w", i.Dst, err)
		}
	}
	return errors.Join(t.Close(), z.Close())
}

func writeItem(t *tar.Writer, top, stage string, i item, epoch time.Time) error {
	h := &tar.Header{Name: top + i.Dst, Mode: int64(i.FileInfo.Mode.Perm()), ModTime: epoch, Uname: "root", Gname: "root",
		Format: tar.FormatUSTAR}
	switch i.Type {
	case kindDir:
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
		return t.WriteHeader(h)
	case kindSymlink:
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, i.Src, 0o777
		return t.WriteHeader(h)
	}
	text, err := os.ReadFile(filepath.Join(stage, i.Src))
	if err != nil {
		return err
	}
	h.Typeflag, h.Size = tar.TypeReg, int64(len(text))
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = t.Write(text)
	return err
}
