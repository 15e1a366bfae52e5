package generator

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks is how many links of one path are followed, as many as the kernel does.
const maxLinks = 40

// followLinks is where a path leads by its links, also when nothing is there yet, such as a share that is not mounted
// this early.
func followLinks(path string) string {
	at, todo := "/", strings.Split(filepath.Clean(path), "/")
	for links := 0; len(todo) > 0; {
		next := filepath.Join(at, todo[0])
		todo = todo[1:]
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return filepath.Clean(path)
		}
		if filepath.IsAbs(to) {
			at = "/"
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return at
}

// isTrusted says whether something is of who runs this, which is root but in tests.
func isTrusted(e os.DirEntry) bool {
	info, err := e.Info()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// linkedDirs are the directories that links within one lead to: a part of a master's caches or keys that is elsewhere.
// Only root's links count, because the master's user may make others, and it must not decide what is open here.
func linkedDirs(dir string) (out []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 || !isTrusted(e) {
			continue
		}
		to := followLinks(filepath.Join(dir, e.Name()))
		if info, err := os.Stat(to); err != nil || info.IsDir() {
			out = append(out, to)
		}
	}
	return out
}
