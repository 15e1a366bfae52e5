package localmaster

import (
	"os"
	"path/filepath"
)

// Bounds on where git work trees are looked for below the roots: operators clone formulas into a root, or into a
// directory of it. Entries are counted over all roots.
const (
	gitDepth   = 2
	maxGitLook = 2000
)

// gitTrees notes the directories of the roots that belong to a git work tree: of their own, or one that has them beside
// other things, as file_roots and pillar_roots of one repository. It also notes the work trees below the roots.
func (o Own) gitTrees(cfg *Config) {
	looks := maxGitLook
	for _, option := range []string{FileRoots, PillarRoots} {
		for _, dirs := range cfg.Roots(option) {
			for _, dir := range dirs {
				if !filepath.IsAbs(dir) {
					continue
				}
				if dir = filepath.Clean(dir); isInWorkTree(dir) {
					o["git:"+dir] = "on"
				}
				o.addTreesBelow(dir, gitDepth, &looks)
			}
		}
	}
}

// isInWorkTree says whether a directory, wherever links lead from it, is a work tree or lies in one. One of etckeeper
// does not count: it is not pulled into.
func isInWorkTree(dir string) bool {
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for at := target; ; at = filepath.Dir(at) {
		if isThere(filepath.Join(at, ".git")) {
			return at == target || !isThere(filepath.Join(at, ".etckeeper"))
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

func (o Own) addTreesBelow(dir string, depth int, looks *int) {
	if depth == 0 || *looks <= 0 {
		return
	}
	f, err := os.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(*looks)
	_ = f.Close()
	*looks -= len(entries)
	for _, e := range entries {
		if !e.IsDir() || e.Name() == ".git" {
			continue
		}
		below := filepath.Join(dir, e.Name())
		if isThere(filepath.Join(below, ".git")) {
			o["git:"+below] = "on"
			continue
		}
		o.addTreesBelow(below, depth-1, looks)
	}
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
