package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// item is what nfpm reads of a line of contents.
type item struct {
	Src, Dst, Type, Packager string
	FileInfo                 struct{ Mode fs.FileMode } `yaml:"file_info"`
}

// Kinds of items.
const (
	kindFile    = ""
	kindConfig  = "config|noreplace"
	kindDir     = "dir"
	kindSymlink = "symlink"
)

// readItems reads the list, strictly: what this program does not understand would be in some packages only.
func readItems(path string) ([]item, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list struct{ Contents []yaml.Node }
	if err := yaml.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	var items []item
	for _, n := range list.Contents {
		var i item
		if err := n.Decode(&i); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n.Line, err)
		}
		if err := i.validateItem(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n.Line, err)
		}
		items = append(items, i)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%s lists nothing", path)
	}
	return items, nil
}

func (i item) validateItem() error {
	switch {
	case !filepath.IsAbs(i.Dst) || filepath.Clean(i.Dst) != i.Dst:
		return fmt.Errorf("dst %q is not a clean absolute path", i.Dst)
	case !slices.Contains([]string{kindFile, kindConfig, kindDir, kindSymlink}, i.Type):
		return fmt.Errorf("type %q is not known", i.Type)
	case i.Type == kindSymlink && !filepath.IsAbs(i.Src):
		return fmt.Errorf("symlink %s leads to %q", i.Dst, i.Src)
	case (i.Type == kindFile || i.Type == kindConfig) && !filepath.IsLocal(i.Src):
		return fmt.Errorf("src %q is not below the stage", i.Src)
	case i.Type != kindSymlink && i.FileInfo.Mode.Perm() == 0:
		return fmt.Errorf("%s has no mode", i.Dst)
	case i.FileInfo.Mode&0o022 != 0:
		return fmt.Errorf("%s may be written by others", i.Dst)
	}
	return nil
}

// isStaged says whether the item's source is below the stage.
func (i item) isStaged() bool { return i.Type == kindFile || i.Type == kindConfig }

// checkItems finds what is laid out and not listed, and the other way round. The scripts are listed elsewhere.
func checkItems(items []item, stage string) error {
	laid := map[string]bool{}
	err := filepath.WalkDir(stage, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(stage, path)
			laid[name] = strings.HasPrefix(name, "scripts/")
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("look at the stage: %w", err)
	}
	var errs []error
	for _, i := range items {
		if _, there := laid[i.Src]; i.isStaged() && !there {
			errs = append(errs, fmt.Errorf("%s is listed and not there", i.Src))
		} else if there {
			laid[i.Src] = true
		}
	}
	for name, listed := range laid {
		if !listed {
			errs = append(errs, fmt.Errorf("%s is in no package", name))
		}
	}
	return errors.Join(errs...)
}
