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
	errHidden = errors.New("a root or a link leads to where only the master sees what there is")
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

// walk lists an environment.
func (s *Settings) walk(ctx context.Context, dirs []string) (*lists, error) {
	w := &walker{
		ctx: ctx, set: s, left: maxWalked,
		files: map[string]struct{}{}, dirs: map[string]struct{}{}, empty: map[string]struct{}{}, links: map[string]string{},
	}
	for _, dir := range dirs {
		w.root, w.realRoot = dir, realPath(dir)
		if s.hides(dir) {
			return nil, errHidden
		}
		if err := w.dir(dir, "", 0); err != nil {
			return nil, fmt.Errorf("list %s: %w", dir, err)
		}
	}
	return w.lists(), nil
}

// dir takes one directory; one that cannot be read is passed over. It is at, and rel below the root.
func (w *walker) dir(at, rel string, depth int) error {
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
		if own(e.Name()) {
			continue
		}
		if err := w.name(e.Name()); err != nil {
			return err
		}
		abs := join(at, e.Name())
		isDir, isLink := e.IsDir(), e.Type()&os.ModeSymlink != 0
		if isLink {
			_, err := os.Lstat(abs)
			isLink = err == nil // os.path.islink, in a directory that may be listed and not searched
			info, err := os.Stat(abs)
			if isDir = err == nil && info.IsDir(); err != nil && w.set.hides(abs) {
				return errHidden
			}
		}
		if err := w.add(abs, join(rel, e.Name()), isDir, isLink); err != nil {
			return err
		}
		if isDir && (w.set.Follow || !isLink) {
			below = append(below, e)
		}
	}
	for _, e := range below {
		if err := w.dir(join(at, e.Name()), join(rel, e.Name()), depth+1); err != nil {
			return err
		}
	}
	return nil
}

// name refuses names with which Python would do something else.
func (w *walker) name(n string) error {
	if !utf8.ValidString(n) || w.set.byRegex && strings.ContainsRune(n, '\n') {
		return errNames
	}
	return nil
}

// add is _add_to of one entry.
func (w *walker) add(abs, rel string, isDir, isLink bool) error {
	if isLink && w.set.IgnoreLinks || w.set.ignore.ignored(rel) {
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
		target = join(from, dest)
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

func (w *walker) lists() *lists {
	l := &lists{files: sorted(w.files), dirs: sorted(w.dirs), empty: sorted(w.empty)}
	for name, dest := range w.links {
		l.links = append(l.links, link{name, dest})
	}
	slices.SortFunc(l.links, func(a, b link) int { return strings.Compare(a.name, b.name) })
	return l.weigh()
}

func sorted(m map[string]struct{}) []string {
	out := make([]string, 0, len(m))
	for n := range m {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// weigh notes what the lists take of memory.
func (l *lists) weigh() *lists {
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
