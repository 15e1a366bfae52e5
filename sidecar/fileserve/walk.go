package fileserve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxWalked = 1 << 20 // entries of an environment
	maxDepth  = 400     // Python gives up at some 900 directories inside each other
)

// They say that an environment cannot be listed here, and why.
var (
	errNames  = errors.New("a file's name is not UTF-8, or has a control character while file_ignore_regex is set")
	errLarge  = errors.New("too many files, or too deep")
	errHidden = errors.New("a root or a link leads to a place that only the master can read")
)

// lists are what roots._file_lists has of an environment.
type lists struct {
	files, dirs, empty []string // sorted, each once
	links              []link   // sorted by name

	weight int64
	err    error // it cannot be listed here
}

type link struct{ name, dest string }

// walker goes through the roots of an environment as os.walk does.
type walker struct {
	ctx                context.Context
	set                *Settings
	root, realRoot     string
	left               int
	files, dirs, empty map[string]struct{}
	links              map[string]string
}

// walkDirs lists an environment.
func (s *Settings) walkDirs(ctx context.Context, dirs []string) (*lists, error) {
	w := &walker{
		ctx: ctx, set: s, left: maxWalked,
		files: map[string]struct{}{}, dirs: map[string]struct{}{}, empty: map[string]struct{}{}, links: map[string]string{},
	}
	for _, dir := range dirs {
		w.root, w.realRoot = dir, realPath(dir)
		if s.isHidden(dir) {
			return nil, errHidden
		}
		if err := w.walkDir(dir, "", 0); err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
	}
	return w.sortedLists(), nil
}

// walkDir takes one directory; one that cannot be read is passed over. It is at, and rel below the root.
func (w *walker) walkDir(at, rel string, depth int) error {
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	if w.left -= len(entries); w.left < 0 || depth > maxDepth {
		return errLarge
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	var below []os.DirEntry
	for _, e := range entries {
		if isOwn(e.Name()) {
			continue
		}
		if err := w.checkName(e.Name()); err != nil {
			return err
		}
		abs := joinPath(at, e.Name())
		isDir, isLink := e.IsDir(), e.Type()&os.ModeSymlink != 0
		if isLink {
			_, err := os.Lstat(abs)
			isLink = err == nil // os.path.islink, in a directory that may be listed and not searched
			info, err := os.Stat(abs)
			if isDir = err == nil && info.IsDir(); err != nil && w.set.isHidden(abs) {
				return errHidden
			}
		}
		if err := w.addEntry(abs, joinPath(rel, e.Name()), isDir, isLink); err != nil {
			return err
		}
		if isDir && (w.set.Follow || !isLink) {
			below = append(below, e)
		}
	}
	for _, e := range below {
		if err := w.walkDir(joinPath(at, e.Name()), joinPath(rel, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// checkName refuses names with which Python would do something else.
func (w *walker) checkName(n string) error {
	if !utf8.ValidString(n) || w.set.byRegex && strings.ContainsRune(n, '\n') {
		return errNames
	}
	return nil
}

// addEntry is _add_to of one entry.
func (w *walker) addEntry(abs, rel string, isDir, isLink bool) error {
	if isLink && w.set.IgnoreLinks || w.set.ignore.isIgnored(rel) {
		return nil
	}
	if isDir {
		w.dirs[rel] = struct{}{}
		if isEmpty(abs) {
			w.empty[rel] = struct{}{}
		}
	} else {
		w.files[rel] = struct{}{}
	}
	if !isLink {
		return nil
	}
	dest, err := os.Readlink(abs)
	if err != nil {
		return fmt.Errorf("%w: %w", errChanged, err) // Python would raise
	}
	if !utf8.ValidString(dest) {
		return errNames
	}
	if !w.set.Follow || w.leadsInside(abs, dest) {
		w.links[rel] = dest
	}
	return nil
}

// leadsInside says whether a link counts as one that stays in the root.
func (w *walker) leadsInside(abs, dest string) bool {
	from := path.Dir(abs)
	if strings.HasPrefix(dest, "..") {
		from = abs // sic
	}
	target := dest
	if !strings.HasPrefix(dest, "/") {
		target = joinPath(from, dest)
	}
	return !strings.HasPrefix(relPath(realPath(path.Clean(target)), w.realRoot), "..")
}

// isEmpty says whether a directory can be read and holds nothing.
func isEmpty(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func (w *walker) sortedLists() *lists {
	l := &lists{files: sortedKeys(w.files), dirs: sortedKeys(w.dirs), empty: sortedKeys(w.empty)}
	for name, dest := range w.links {
		l.links = append(l.links, link{name, dest})
	}
	slices.SortFunc(l.links, func(a, b link) int { return strings.Compare(a.name, b.name) })
	return l.setWeight()
}

func sortedKeys(m map[string]struct{}) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// setWeight notes what the lists take of memory.
func (l *lists) setWeight() *lists {
	l.weight = 256
	for _, names := range [][]string{l.files, l.dirs, l.empty} {
		for _, n := range names {
			l.weight += int64(len(n)) + 16
		}
	}
	for _, k := range l.links {
		l.weight += int64(len(k.name)+len(k.dest)) + 32
	}
	return l
}
