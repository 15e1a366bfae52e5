package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"saltclusterd/fsync/scan"
)

// maxRootDirs bounds how many directories of the roots are looked at.
const maxRootDirs = 20_000

// Roots looks whether a user can install in the roots what others have edited: files are renamed into their
// directories, so these decide. Entries that ignore names are never installed and are not checked.
func Roots(who Account, dirs, ignore []string) []Finding {
	if who.UID == 0 {
		return nil
	}
	ig, err := scan.NewIgnore(ignore)
	if err != nil || ignore == nil {
		ig, _ = scan.NewIgnore(scan.DefaultIgnore())
	}
	var out []Finding
	seen := map[string]bool{}
	for _, dir := range dirs {
		target, err := filepath.EvalSymlinks(dir) // saltclusterd follows it, too
		if err != nil || seen[target] {
			continue
		}
		seen[target] = true
		l := rootLook{who: who, dir: target, ignore: ig}
		_ = filepath.WalkDir(target, l.visitEntry)
		if l.closed == 0 {
			continue
		}
		what := fmt.Sprintf("the user %s may not write there", who.Name)
		if l.closed > 1 {
			what += fmt.Sprintf(", nor in %d more directories of %s", l.closed-1, target)
		}
		f := Finding{
			Check: "permissions", Level: Warn, Where: l.first, What: what,
			Why:  "saltclusterd runs as the salt-master's user: edits made on other nodes are not installed here, and this node stays behind",
			Next: l.adviceText() + "; or set cluster_roots_sync: 'off' if another program fills it on each node",
		}
		if l.belongsToRoot() && l.closed == 1+l.below {
			f.Command = l.chownCommand()
		}
		out = append(out, f)
	}
	return out
}

// CreateRootCommand returns the command that creates a root for a user who cannot create it; nil: it exists, the user
// can, or the directory above it does not exist either.
func CreateRootCommand(who Account, dir string) []string {
	if _, err := os.Lstat(dir); who.UID == 0 || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	above := filepath.Dir(dir)
	info, err := os.Stat(above)
	if err != nil {
		return nil
	}
	st, isUnix := info.Sys().(*syscall.Stat_t)
	if !isUnix || !who.cannotWrite(above, st, info.Mode().Perm()) {
		return nil
	}
	return []string{"install", "-d", "-o", who.Name, "-g", who.mainGroup(), dir}
}

// rootLook is a look at one root.
type rootLook struct {
	who    Account
	dir    string
	ignore scan.Ignore

	looked, closed int
	below          int    // how many of the closed ones are below the first
	first          string // that is closed
	st             *syscall.Stat_t
	others         bool // below it are entries of other owners, or of a repository, that chown -R would take
}

func (l *rootLook) visitEntry(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return nil
	}
	inside := l.first != "" && strings.HasPrefix(path, l.first+"/")
	if rel, _ := filepath.Rel(l.dir, path); path != l.dir && l.ignore.Match(rel, d.Name()) {
		l.others = l.others || inside
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if !d.IsDir() && (!inside || l.others) {
		return nil
	}
	info, err := d.Info()
	if err != nil {
		return nil
	}
	st, isUnix := info.Sys().(*syscall.Stat_t)
	if !isUnix {
		return nil
	}
	if inside && st.Uid != l.who.UID && (st.Uid != l.st.Uid || st.Gid != l.st.Gid) {
		l.others = true
	}
	if !d.IsDir() {
		return nil
	}
	if l.looked++; l.looked > maxRootDirs {
		l.others = true // the rest is not looked at
		return fs.SkipAll
	}
	if !l.who.cannotWrite(path, st, info.Mode().Perm()) {
		return nil
	}
	l.closed++
	if l.first == "" {
		l.first, l.st = path, st
	} else if inside {
		l.below++
	}
	return nil
}

// adviceText opens the first directory that is closed, without taking it from the users who work there. Where no user
// does, it also opens everything below.
func (l *rootLook) adviceText() string {
	text, opened := openingCommand(l.who, l.first, l.st), 1
	switch {
	case text != "":
	case l.belongsToRoot():
		text, opened = strings.Join(l.chownCommand(), " "), 1+l.below
	default: // it keeps its owner: git, for one, refuses to work in a directory of another user
		text = fmt.Sprintf("chgrp %s %s; chmod g+wx %s", l.who.mainGroup(), l.first, l.first)
	}
	if l.closed > opened {
		text += "; likewise the others"
	}
	return text
}

// belongsToRoot says whether root owns the first directory that is closed, and all that is in it, and no group may
// write there.
func (l *rootLook) belongsToRoot() bool {
	return l.st.Uid == 0 && !l.others && openingCommand(l.who, l.first, l.st) == ""
}

func (l *rootLook) chownCommand() []string { return []string{"chown", "-R", l.who.Name + ":", l.first} }

// openingCommand is what lets a user write in a directory that belongs to it or to a group that edits there, empty when
// it does not.
func openingCommand(who Account, dir string, st *syscall.Stat_t) string {
	switch {
	case st.Uid == who.UID:
		return "chmod u+wx " + dir
	case slices.Contains(who.GIDs, st.Gid):
		return "chmod g+wx " + dir
	case st.Gid != 0 && st.Mode&0o020 != 0:
		return fmt.Sprintf("usermod -aG %s %s; systemctl restart saltclusterd", groupName(st.Gid), who.Name)
	}
	return ""
}
