package scan

import (
	"fmt"
	"path"
	"strings"

	"saltclusterd/fsync/tree"
)

// DefaultIgnore is what version control, editors and file systems leave in directories.
func DefaultIgnore() []string {
	return []string{
		".git", ".svn", ".hg", ".bzr", "*~", ".*.sw[a-p]", ".*.swx", "4913", ".#*", "#*#", ".nfs????*", ".DS_Store", ".goutputstream-*",
	}
}

// Ignore matches what is not part of a tree.
type Ignore struct{ names, paths []string }

// NewIgnore takes patterns as path.Match has them. One with a slash is for paths relative to the slot, others for names.
func NewIgnore(patterns []string) (Ignore, error) {
	var ig Ignore
	for _, p := range patterns {
		if _, err := path.Match(p, "x"); err != nil {
			return ig, fmt.Errorf("ignore pattern %q: %w", p, err)
		}
		if strings.Contains(p, "/") {
			ig.paths = append(ig.paths, strings.Trim(p, "/"))
		} else {
			ig.names = append(ig.names, p)
		}
	}
	return ig, nil
}

// Match says whether a path with the last name is ignored.
func (ig Ignore) Match(full, name string) bool {
	if strings.HasPrefix(name, tree.OwnPrefix) {
		return true
	}
	for _, p := range ig.names {
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	for _, p := range ig.paths {
		if ok, _ := path.Match(p, full); ok {
			return true
		}
	}
	return false
}
