package unshare

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"saltclusterd/durable"
	"saltclusterd/paths"
)

// CopyOptions say how a pass is made.
type CopyOptions struct {
	Skip   func(path string) bool // paths in the tree that are not to be copied, nor removed from the copy; may be nil
	Moved  []Tree                 // links into these are made to lead to the copies
	Settle bool                   // compare the content of files that look the same, too
	Keep   bool                   // the copy is in use: only add what it lacks
	Tell   func(Report)           // is told how far it is, often; may be nil
}

// Report says what a pass has done.
type Report struct {
	Files   int      `json:"files"` // regular files of the original
	Bytes   int64    `json:"bytes"`
	Copied  int      `json:"copied"`
	Removed int      `json:"removed"`
	Special int      `json:"special"` // sockets, pipes and devices, left out
	Leading []string `json:"leading"` // links whose text leads to the share, at most maxLeading
}

// Add adds up two reports.
func (r *Report) Add(o Report) {
	r.Files, r.Bytes = r.Files+o.Files, r.Bytes+o.Bytes
	r.Copied, r.Removed, r.Special = r.Copied+o.Copied, r.Removed+o.Removed, r.Special+o.Special
	r.Leading = append(r.Leading, o.Leading[:min(len(o.Leading), maxLeading-min(maxLeading, len(r.Leading)))]...)
}

const (
	maxLeading = 20
	tempName   = ".saltclusterd-copy.tmp"
	// vanishing is how often a file may change while it is copied before that is left to the next pass.
	vanishing = 3
)

// ErrDamaged says that a copy does not read as it was written.
var ErrDamaged = errors.New("unshare: the copy is not what was written")

// Copy makes one pass over a tree.
func Copy(ctx context.Context, t Tree, o CopyOptions) (Report, error) {
	if err := os.MkdirAll(t.To, 0o700); err != nil {
		return Report{}, fmt.Errorf("copy %s: %w", t.From, err)
	}
	from, err := os.OpenRoot(t.From)
	if err != nil {
		return Report{}, fmt.Errorf("copy %s: %w", t.From, err)
	}
	defer from.Close()
	to, err := os.OpenRoot(t.To)
	if err != nil {
		return Report{}, fmt.Errorf("copy %s: %w", t.From, err)
	}
	defer to.Close()
	c := &copier{ctx: ctx, tree: t, o: o, from: from, to: to, buffer: make([]byte, 256<<10)}
	if err := c.copyDir("."); err != nil {
		return c.r, fmt.Errorf("copy %s: %w", t.From, err)
	}
	return c.r, durable.SyncFS(t.To)
}

type copier struct {
	ctx      context.Context
	tree     Tree
	o        CopyOptions
	from, to *os.Root
	r        Report
	buffer   []byte
}

func (c *copier) skips(path string) bool { return c.o.Skip != nil && c.o.Skip(path) }

// copyDir copies a directory with all that is in it.
func (c *copier) copyDir(path string) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	info, err := c.from.Lstat(path)
	if err != nil {
		return err
	}
	names, err := listDir(c.from, path)
	if err != nil {
		return err
	}
	there := make(map[string]struct{}, len(names))
	for _, name := range names {
		there[name] = struct{}{}
		p := filepath.Join(path, name)
		if c.skips(p) {
			continue
		}
		if err := c.copyEntry(p); err != nil && !errors.Is(err, fs.ErrNotExist) { // it went meanwhile
			return err
		}
	}
	if !c.o.Keep {
		if err := c.removeOthers(path, there); err != nil {
			return err
		}
	}
	return c.setAttributes(path, info)
}

func listDir(r *os.Root, path string) ([]string, error) {
	d, err := r.Open(path)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// removeOthers removes from a copied directory what the original does not have.
func (c *copier) removeOthers(path string, there map[string]struct{}) error {
	have, err := listDir(c.to, path)
	if err != nil {
		return err
	}
	for _, name := range have {
		p := filepath.Join(path, name)
		if _, ok := there[name]; ok || c.skips(p) {
			continue
		}
		if err := c.to.RemoveAll(p); err != nil {
			return err
		}
		c.r.Removed++
	}
	return nil
}

// copyEntry copies what is at a path.
func (c *copier) copyEntry(path string) error {
	info, err := c.from.Lstat(path)
	if err != nil {
		return err
	}
	have, err := c.to.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if have != nil && have.Mode().Type() != info.Mode().Type() {
		if c.o.Keep {
			return nil
		}
		if err := c.to.RemoveAll(path); err != nil {
			return err
		}
		have = nil
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		if have == nil {
			if err := c.to.Mkdir(path, 0o700); err != nil {
				return err
			}
		}
		return c.copyDir(path)
	case fs.ModeSymlink:
		return c.copyLink(path, have != nil, info)
	case 0:
		return c.copyRegular(path, have, info)
	}
	c.r.Special++
	return nil
}

func (c *copier) copyLink(path string, have bool, info fs.FileInfo) error {
	text, err := c.from.Readlink(path)
	if err != nil {
		return err
	}
	if text = c.moveTarget(path, text); have {
		if old, err := c.to.Readlink(path); err == nil && (old == text || c.o.Keep) {
			return nil
		}
		if err := c.to.Remove(path); err != nil {
			return err
		}
	}
	if err := c.to.Symlink(text, path); err != nil {
		return err
	}
	return c.setOwner(path, info)
}

// moveTarget is the text of a link in the copy. A relative one within its tree stays as it is.
func (c *copier) moveTarget(path, text string) string {
	if !filepath.IsAbs(text) {
		if inner := filepath.Join(filepath.Dir(path), text); inner != ".." && !strings.HasPrefix(inner, "../") {
			return text
		}
	}
	target := text
	if !filepath.IsAbs(target) {
		target = filepath.Join(c.tree.From, filepath.Dir(path), text)
	}
	for _, t := range append([]Tree{c.tree}, c.o.Moved...) {
		if resolved := realPath(target); paths.Within(resolved, t.From) {
			return filepath.Join(t.place(), strings.TrimPrefix(resolved, t.From))
		}
	}
	// Another host may have the share mounted elsewhere, and a 3008 master there has made master.pem a link with that
	// path.
	if beside := filepath.Join(filepath.Dir(path), filepath.Base(target)); beside != path {
		a, errA := os.Stat(target)
		b, errB := c.from.Lstat(beside)
		if errA == nil && errB == nil && os.SameFile(a, b) {
			return filepath.Join(c.tree.place(), beside)
		}
	}
	if len(c.r.Leading) < maxLeading {
		c.r.Leading = append(c.r.Leading, filepath.Join(c.tree.From, path)+" -> "+text)
	}
	return text
}

// place is where a tree will be when the copy is in use.
func (t Tree) place() string {
	if t.Link != "" {
		return t.Link
	}
	return t.To
}

// realPath resolves the directory of a path, not what is at the path: that may be a link itself, which is copied as
// one.
func realPath(path string) string {
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
		return filepath.Join(dir, filepath.Base(path))
	}
	return filepath.Clean(path)
}

func (c *copier) copyRegular(path string, have, info fs.FileInfo) error {
	c.r.Files++
	c.r.Bytes += info.Size()
	if c.o.Tell != nil {
		c.o.Tell(c.r)
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if have != nil {
		if c.o.Keep {
			return nil
		}
		same := have.Size() == info.Size() && have.ModTime().Equal(info.ModTime())
		if same && c.o.Settle {
			var err error
			if same, err = c.equalFiles(path); err != nil {
				return err
			}
		}
		if same {
			return c.setAttributes(path, info)
		}
	}
	for try := 1; ; try++ {
		info, again, err := c.copyFile(path)
		if err == nil && !again || err != nil || try == vanishing {
			if err == nil {
				c.r.Copied++
				err = c.setAttributes(path, info)
			}
			return err
		}
	}
}

// copyFile copies a file; again when it changed meanwhile.
func (c *copier) copyFile(path string) (info fs.FileInfo, again bool, err error) {
	in, err := c.from.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, false, err
	}
	defer in.Close()
	if info, err = in.Stat(); err != nil {
		return nil, false, err
	}
	temp := filepath.Join(filepath.Dir(path), tempName)
	sum := sha256.New()
	if err := c.writeFile(temp, io.TeeReader(in, sum)); err != nil {
		return nil, false, err
	}
	if err := c.readBack(temp, sum); err != nil {
		return nil, false, err
	}
	if err := c.to.Rename(temp, path); err != nil {
		return nil, false, err
	}
	after, err := in.Stat()
	if err != nil {
		return nil, false, err
	}
	return info, after.Size() != info.Size() || !after.ModTime().Equal(info.ModTime()), nil
}

func (c *copier) writeFile(name string, r io.Reader) (err error) {
	out, err := c.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, r, c.buffer)
	return err
}

// readBack compares the hash of what was written with that of what was read.
func (c *copier) readBack(name string, want hash.Hash) error {
	got, err := sumOf(c.to, name, c.buffer)
	if err != nil {
		return err
	}
	if got != [sha256.Size]byte(want.Sum(nil)) {
		return fmt.Errorf("%w: %s", ErrDamaged, name)
	}
	return nil
}

func (c *copier) equalFiles(path string) (bool, error) {
	a, err := sumOf(c.from, path, c.buffer)
	if err != nil {
		return false, err
	}
	b, err := sumOf(c.to, path, c.buffer)
	return a == b, err
}

func sumOf(r *os.Root, name string, buffer []byte) (sum [sha256.Size]byte, err error) {
	f, err := r.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{f}, buffer); err != nil {
		return sum, err
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// setAttributes gives a copy owner, mode and time of the original.
func (c *copier) setAttributes(path string, info fs.FileInfo) error {
	if err := c.setOwner(path, info); err != nil {
		return err
	}
	mode := info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)
	if err := c.to.Chmod(path, mode); err != nil {
		return err
	}
	return c.to.Chtimes(path, info.ModTime(), info.ModTime())
}

// setOwner makes the copy belong to whom the original belongs. Only root can; anybody else has copied what is his own.
func (c *copier) setOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return c.to.Lchown(path, int(st.Uid), int(st.Gid))
}
