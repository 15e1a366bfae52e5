package localmaster

import (
	"cmp"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"saltclusterd/sidecar/fnmatch"
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

// pyGlob is sorted(glob.glob(path)): '*' stays within a name and passes over hidden ones, a slash at the end means
// directories only and stays.
func pyGlob(path string) []string {
	out := globPath(path)
	sort.Strings(out)
	return out
}

func globPath(path string) []string {
	dir, name := osSplit(path)
	if !hasMagic(path) {
		if name == "" && isDir(dir) {
			return []string{path}
		}
		if _, err := os.Lstat(path); err != nil || name == "" {
			return nil
		}
		return []string{path}
	}
	dirs := []string{dir}
	if hasMagic(dir) {
		dirs = globPath(dir)
	}
	var out []string
	for _, d := range dirs {
		out = append(out, globName(d, name)...)
	}
	return out
}

// globName lists what matches one name of a pattern in a directory.
func globName(dir, name string) (out []string) {
	if !hasMagic(name) {
		at := osJoin(dir, name)
		if _, err := os.Lstat(at); err != nil || name == "" && !isDir(dir) {
			return nil
		}
		return []string{at}
	}
	entries, err := os.ReadDir(cmp.Or(dir, "."))
	re, badPattern := fnmatch.Compile(name)
	if err != nil || badPattern != nil {
		return nil
	}
	for _, e := range entries {
		if nameMatches(re, name, e.Name()) {
			out = append(out, osJoin(dir, e.Name()))
		}
	}
	return out
}

func nameMatches(re *regexp.Regexp, pattern, name string) bool {
	return re.MatchString(name) && (strings.HasPrefix(pattern, ".") || !strings.HasPrefix(name, "."))
}

// globMatches says whether pyGlob would find a file of that name, if there were one.
func globMatches(path, name string) bool {
	patterns, names := strings.Split(filepath.Clean(path), "/"), strings.Split(name, "/")
	if len(patterns) != len(names) {
		return false
	}
	for i, p := range patterns {
		if !hasMagic(p) {
			if p != names[i] {
				return false
			}
			continue
		}
		re, err := fnmatch.Compile(p)
		if err != nil || !nameMatches(re, p, names[i]) {
			return false
		}
	}
	return true
}

// osSplit is os.path.split.
func osSplit(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/') + 1
	dir, name = path[:i], path[i:]
	if trimmed := strings.TrimRight(dir, "/"); trimmed != "" {
		dir = trimmed
	}
	return dir, name
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
