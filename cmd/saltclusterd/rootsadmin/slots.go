package rootsadmin

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"saltclusterd/fsync/roots"
	"saltclusterd/fsync/tree"
	"saltclusterd/sidecar/localmaster"
)

// dynamicEnv is the environment that stands for all that are not configured; its directories have no names before
// somebody asks for one.
const dynamicEnv = "__env__"

// packageRoots is where Salt's own package manager puts states; hardly anybody has it, but it is configured by default.
const packageRoots = "/srv/spm/"

// findSlots lists the directories of the master's file_roots and pillar_roots that are replicated, and says of the others
// why they are not. forbidden are directories that must not be inside of one.
func findSlots(c *localmaster.Config, forbidden ...string) (slots []roots.Slot, notes []string) {
	f := &slotFinder{forbidden: forbidden}
	backends := c.Strings("fileserver_backend")
	for _, b := range backends {
		if b != "roots" {
			f.note("what the fileserver backend %s serves is not replicated: each master gets it for itself", b)
		}
	}
	if slices.Contains(backends, "roots") {
		f.all(tree.FileRoots, c, localmaster.FileRoots)
	} else {
		f.note("file_roots are not replicated: fileserver_backend does not name roots")
	}
	f.all(tree.PillarRoots, c, localmaster.PillarRoots)
	return f.finish(), f.notes
}

type slotFinder struct {
	forbidden []string
	found     []roots.Slot
	notes     []string
}

func (f *slotFinder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// all finds the slots of one option.
func (f *slotFinder) all(kind string, c *localmaster.Config, option string) {
	envs := c.Roots(option)
	if c.Globbed(option) {
		f.note("%s has wildcards: which directories there are was seen when saltclusterd started, and one that is new on a master is not made on others", option)
	}
	for _, env := range slices.Sorted(maps.Keys(envs)) {
		if env == dynamicEnv {
			f.note("%s of the environment %s are not replicated: name the environments", option, dynamicEnv)
			continue
		}
		for pos, dir := range envs[env] {
			if c.SetBy(option) == "" && strings.HasPrefix(dir, packageRoots) && isMissing(dir) {
				f.note("%s:%s:%d (%s) is not replicated: it is a default and does not exist", kind, env, pos, dir)
				continue
			}
			f.one(roots.Slot{Name: roots.SlotName{Kind: kind, Env: env, Pos: pos}, Dir: dir})
		}
	}
}

func (f *slotFinder) one(s roots.Slot) {
	switch {
	case !s.Name.Valid():
		f.note("%s is not replicated: the name of the environment or the number of directories is out of bounds", s.Name)
	case !filepath.IsAbs(s.Dir):
		f.note("%s (%q) is not replicated: it is no absolute path", s.Name, s.Dir)
	default:
		s.Dir = filepath.Clean(s.Dir)
		f.found = append(f.found, s)
	}
}

// finish leaves out what is inside of another slot, or what must not be replicated as a whole.
func (f *slotFinder) finish() []roots.Slot {
	real := make([]string, len(f.found))
	bad := make([]bool, len(f.found))
	for i, s := range f.found {
		real[i] = realPath(s.Dir)
		for _, dir := range f.forbidden {
			if bad[i] = dir != "" && within(realPath(dir), real[i]); bad[i] {
				f.note("%s (%s) is not replicated: %s is inside of it", s.Name, s.Dir, dir)
				break
			}
		}
	}
	var out []roots.Slot
	for i, s := range f.found {
		if bad[i] {
			continue
		}
		covered := false
		for j := range f.found {
			if covered = !bad[j] && j != i && (real[i] == real[j] && j < i || real[i] != real[j] && within(real[i], real[j])); covered {
				f.note("%s (%s) is replicated as a part of %s (%s)", s.Name, s.Dir, f.found[j].Name, f.found[j].Dir)
				break
			}
		}
		if !covered {
			out = append(out, s)
		}
	}
	return out
}

func isMissing(path string) bool {
	_, err := os.Lstat(path)
	return err != nil
}

// within says whether a clean path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// realPath resolves the symlinks of a path as far as it exists.
func realPath(path string) string {
	rest := ""
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if p == "/" || p == "." {
			return filepath.Join(p, rest)
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
