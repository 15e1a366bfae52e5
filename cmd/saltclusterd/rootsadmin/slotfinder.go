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
	"saltclusterd/paths"
	"saltclusterd/sidecar/localmaster"
)

// dynamicEnv is the environment that stands for all that are not configured. Its directories have no names before a
// minion asks for one.
const dynamicEnv = "__env__"

// packageRoots is where Salt's own package manager puts states. It is configured by default and rarely exists.
const packageRoots = "/srv/spm/"

// findSlots lists the directories of the master's file_roots and pillar_roots that are replicated; notes say why others
// are not. A slot must have none of the forbidden directories inside.
func findSlots(c *localmaster.Config, forbidden ...string) (slots []roots.Slot, notes []string) {
	f := &slotFinder{forbidden: forbidden}
	backends := c.Strings("fileserver_backend")
	for _, b := range backends {
		if b != "roots" {
			f.addNote("files of the fileserver backend %s are not replicated: each master fetches them itself", b)
		}
	}
	if slices.Contains(backends, "roots") {
		f.findAll(tree.FileRoots, c, localmaster.FileRoots)
	} else {
		f.addNote("file_roots are not replicated: fileserver_backend does not name roots")
	}
	f.findAll(tree.PillarRoots, c, localmaster.PillarRoots)
	slots = f.removeNested()
	return slots, f.notes
}

// slotFinder collects the slots of a configuration.
type slotFinder struct {
	forbidden []string
	found     []roots.Slot
	notes     []string
}

func (f *slotFinder) addNote(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// findAll finds the slots of one option.
func (f *slotFinder) findAll(kind string, c *localmaster.Config, option string) {
	envs := c.Roots(option)
	if c.Globbed(option) {
		f.addNote("%s has wildcards, which were evaluated when saltclusterd started: "+
			"a new directory on one master is not created on the others", option)
	}
	for _, env := range slices.Sorted(maps.Keys(envs)) {
		if env == dynamicEnv {
			f.addNote("%s of the environment %s are not replicated: name the environments", option, dynamicEnv)
			continue
		}
		for pos, dir := range envs[env] {
			if c.SetBy(option) == "" && strings.HasPrefix(dir, packageRoots) && isMissing(dir) {
				f.addNote("%s:%s:%d (%s) is not replicated: it is a default and does not exist", kind, env, pos, dir)
				continue
			}
			f.addSlot(roots.Slot{Name: roots.SlotName{Kind: kind, Env: env, Pos: pos}, Dir: dir})
		}
	}
}

// addSlot takes a slot if it can be replicated.
func (f *slotFinder) addSlot(s roots.Slot) {
	switch {
	case !s.Name.Valid():
		f.addNote("%s is not replicated: the environment's name is too long, or it has too many directories", s.Name)
	case !filepath.IsAbs(s.Dir):
		f.addNote("%s (%q) is not replicated: it is not an absolute path", s.Name, s.Dir)
	default:
		s.Dir = filepath.Clean(s.Dir)
		f.found = append(f.found, s)
	}
}

// removeNested returns the slots without those that are inside of another one, and without those that have a forbidden
// directory in them.
func (f *slotFinder) removeNested() []roots.Slot {
	resolved := make([]string, len(f.found))
	bad := make([]bool, len(f.found))
	for i, s := range f.found {
		resolved[i] = resolvePath(s.Dir)
		for _, dir := range f.forbidden {
			if bad[i] = dir != "" && paths.Within(resolvePath(dir), resolved[i]); bad[i] {
				f.addNote("%s (%s) is not replicated: %s is inside of it", s.Name, s.Dir, dir)
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
			same := resolved[i] == resolved[j]
			covered = !bad[j] && (same && j < i || !same && paths.Within(resolved[i], resolved[j]))
			if covered {
				f.addNote("%s (%s) is replicated as a part of %s (%s)", s.Name, s.Dir, f.found[j].Name, f.found[j].Dir)
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

// resolvePath resolves the symlinks of a path as far as it exists.
func resolvePath(path string) string {
	rest := ""
	for p := filepath.Clean(path); ; p = filepath.Dir(p) {
		if resolved, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(resolved, rest)
		}
		if p == "/" || p == "." {
			return filepath.Join(p, rest)
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}
