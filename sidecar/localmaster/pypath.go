package localmaster

import (
	"os"
	"os/user"
	"path/filepath"
	"sort"
	"strings"
)

// saltJoin is salt.utils.path.join: later parts are relative even when they begin with a slash.
func saltJoin(root string, parts ...string) string {
	all := []string{filepath.Clean(root)}
	for _, p := range parts {
		all = append(all, strings.TrimLeft(filepath.Clean(p), "/"))
	}
	return filepath.Clean(strings.Join(all, "/"))
}

// osJoin is os.path.join: an absolute part starts anew, nothing is cleaned.
func osJoin(dir, name string) string {
	switch {
	case strings.HasPrefix(name, "/"), dir == "":
		return name
	case strings.HasSuffix(dir, "/"):
		return dir + name
	}
	return dir + "/" + name
}

// expandUser is os.path.expanduser.
func expandUser(path string) string {
	if !strings.HasPrefix(path, "~") {
		return path
	}
	name, rest, _ := strings.Cut(path[1:], "/")
	var home string
	if name == "" {
		home, _ = os.UserHomeDir()
	} else if u, err := user.Lookup(name); err == nil {
		home = u.HomeDir
	}
	if home == "" {
		return path
	}
	return strings.TrimRight(home, "/") + strings.TrimSuffix("/"+rest, "/")
}

func hasMagic(path string) bool { return strings.ContainsAny(path, "*?[") }

// pyGlob is sorted(glob.glob(path)): wildcards do not match a leading dot.
func pyGlob(path string) []string {
	if !hasMagic(path) {
		if _, err := os.Lstat(path); err != nil {
			return nil
		}
		return []string{path}
	}
	matches, err := filepath.Glob(pyPattern(path))
	if err != nil {
		return nil
	}
	want := strings.Split(filepath.Clean(path), "/")
	out := matches[:0]
	for _, m := range matches {
		if !hiddenMatch(want, strings.Split(filepath.Clean(m), "/")) {
			out = append(out, m)
		}
	}
	sort.Strings(out)
	return out
}

// pyPattern writes a pattern of Python's as Go has it.
func pyPattern(path string) string { return strings.NewReplacer(`\`, `\\`, "[!", "[^").Replace(path) }

func hiddenMatch(pattern, match []string) bool {
	for i := range min(len(pattern), len(match)) {
		if strings.HasPrefix(match[i], ".") && !strings.HasPrefix(pattern[i], ".") {
			return true
		}
	}
	return false
}
