package localmaster

import (
	"io/fs"
	"path/filepath"
	"slices"
)

// Changes are configuration files as they would be, by absolute path: their new content, or nil for one that is gone.
type Changes map[string][]byte

// readFile returns the content of a file after the changes.
func (c Changes) readFile(path string) ([]byte, error) {
	text, changed := c[filepath.Clean(path)]
	switch {
	case !changed:
		return readLimited(path)
	case text == nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return text, nil
}

// globFiles is pyGlob after the changes.
func (c Changes) globFiles(path string) []string {
	names := pyGlob(path)
	if len(c) == 0 {
		return names
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		_, changed := c[filepath.Clean(name)]
		return changed
	})
	for name, text := range c {
		if text != nil && globMatches(path, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
