package tree

import "fmt"

// Walk calls fn for all entries below a directory, parents first. Paths are relative to it, with slashes.
func Walk(o Objects, dir Hash, fn func(path string, e *Entry) error) error {
	return walkDir(o, dir, "", 0, fn)
}

func walkDir(o Objects, dir Hash, prefix string, depth int, fn func(string, *Entry) error) error {
	if depth > MaxDepth {
		return fmt.Errorf("%w: %d directories deep at %q", ErrTooLarge, depth, prefix)
	}
	entries, err := ReadDir(o, dir)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		path := prefix + e.Name
		if err := fn(path, e); err != nil {
			return err
		}
		if e.Type == Dir {
			if err := walkDir(o, e.Object, path+"/", depth+1, fn); err != nil {
				return err
			}
		}
	}
	return nil
}

// Count tells how many files there are below a directory, and their bytes. Symlinks count as files.
func Count(o Objects, dir Hash) (files int, bytes int64, err error) {
	err = Walk(o, dir, func(_ string, e *Entry) error {
		if e.Type != Dir {
			files++
			bytes += e.Size()
		}
		return nil
	})
	return files, bytes, err
}
