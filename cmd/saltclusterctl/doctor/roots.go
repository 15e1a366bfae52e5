package doctor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxRootDirs bounds how many directories of the roots are looked at.
const maxRootDirs = 20_000

// Roots looks whether a user can install in the roots what others have edited: files are renamed into their directories, so these decide. As with
// Permissions, ACLs are not looked at.
func Roots(user string, uid, gid uint32, dirs []string) []Finding {
	if uid == 0 {
		return nil
	}
	var out []Finding
	for _, dir := range dirs {
		looked, closed, first := 0, 0, ""
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.IsDir() {
				return nil
			}
			if looked++; looked > maxRootDirs {
				return fs.SkipAll
			}
			info, err := os.Stat(path)
			if err != nil {
				return nil
			}
			if st, isUnix := info.Sys().(*syscall.Stat_t); isUnix && !mayWrite(st, info.Mode().Perm(), uid, gid) {
				if closed++; first == "" {
					first = path
				}
			}
			return nil
		})
		if closed == 0 {
			continue
		}
		what := fmt.Sprintf("the user %s may not write there", user)
		if closed > 1 {
			what += fmt.Sprintf(", nor in %d more below", closed-1)
		}
		out = append(out, Finding{
			Check: "permissions", Level: Warn, Where: first, What: what,
			Why:  "saltclusterd runs as the salt-master's user: what is edited on another node is not installed here, and this node stays behind",
			Next: fmt.Sprintf("chown -R %s: %s; or cluster_roots_sync: 'off', where something else fills it on each node", user, dir),
		})
	}
	return out
}
