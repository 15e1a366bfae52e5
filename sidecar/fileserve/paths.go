package fileserve

import (
	"os"
	"path"
	"strings"
)

// joinPath is os.path.join of a directory and a relative path: nothing is cleaned.
func joinPath(dir, name string) string {
	if strings.HasSuffix(dir, "/") || dir == "" {
		return dir + name
	}
	return dir + "/" + name
}

// isInside says whether a clean path is dir or below it: os.path.commonpath([name, dir]) == dir.
func isInside(name, dir string) bool {
	return name == dir || dir == "/" || strings.HasPrefix(name, dir) && name[len(dir)] == '/'
}

// realPath is os.path.realpath of an absolute path: links are followed as far as they lead, what does not exist stays
// as it is written.
func realPath(name string) string {
	p, _ := joinReal("/", name, map[string]*string{})
	return path.Clean(p)
}

// joinReal is posixpath._joinrealpath, not strict. ok is false at a circle of links.
func joinReal(at, rest string, seen map[string]*string) (_ string, ok bool) {
	if strings.HasPrefix(rest, "/") {
		rest, at = rest[1:], "/"
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at = path.Dir(at)
			continue
		}
		next := joinPath(at, name)
		info, err := os.Lstat(next)
		if err != nil || info.Mode()&os.ModeSymlink == 0 {
			at = next
			continue
		}
		if known, met := seen[next]; met {
			if known == nil {
				return joinPath(next, rest), false
			}
			at = *known
			continue
		}
		seen[next] = nil
		dest, err := os.Readlink(next)
		if err != nil {
			return joinPath(next, rest), false
		}
		if at, ok = joinReal(at, dest, seen); !ok {
			return joinPath(at, rest), false
		}
		resolved := at
		seen[next] = &resolved
	}
	return at, true
}

// relPath is os.path.relpath of two clean absolute paths.
func relPath(name, dir string) string {
	if name == dir {
		return "."
	}
	n, d := splitPath(name), splitPath(dir)
	common := 0
	for common < len(n) && common < len(d) && n[common] == d[common] {
		common++
	}
	out := make([]string, 0, len(n)+len(d))
	for range len(d) - common {
		out = append(out, "..")
	}
	return strings.Join(append(out, n[common:]...), "/")
}

func splitPath(p string) []string {
	if p = strings.Trim(p, "/"); p == "" {
		return nil
	}
	return strings.Split(p, "/")
}
