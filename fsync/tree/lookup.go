package tree

import "strings"

// Lookup returns what a directory has at a path; nil when there is nothing, or it cannot be read.
func Lookup(o Objects, dir Hash, path string) *Entry {
	for {
		name, rest, deeper := strings.Cut(path, "/")
		entries, err := ReadDir(o, dir)
		if err != nil {
			return nil
		}
		var found *Entry
		for i := range entries {
			if entries[i].Name == name {
				found = &entries[i]
			}
		}
		if !deeper || !found.is(Dir) {
			if deeper {
				return nil
			}
			return found
		}
		dir, path = found.Object, rest
	}
}
