package unshare

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
}

func mustCopy(t *testing.T, tree Tree, o CopyOptions) Report {
	t.Helper()
	r, err := Copy(t.Context(), tree, o)
	require.NoError(t, err)
	return r
}

func is(t *testing.T, path, want string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%s: %q, %v, want %q", path, got, err, want)
	}
}

func TestCopy(t *testing.T) {
	s := newSite(t)
	from, to := s.share+"/pki", s.top+"/local/pki"
	write(t, from+"/minions/web1", "key", 0o644)
	write(t, from+"/m3.pem", "private", 0o400)
	link(t, from+"/m3.pem", from+"/master.pem") // as 3008 does
	link(t, "m3.pem", from+"/beside")
	link(t, s.share, s.top+"/mounted-elsewhere")
	link(t, s.top+"/mounted-elsewhere/pki/m3.pem", from+"/other.pem")
	link(t, s.share+"/jobs/x", from+"/job")
	link(t, s.share+"/elsewhere", from+"/away")
	require.NoError(t, os.Mkdir(from+"/empty", 0o750))
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, os.Chtimes(from+"/minions/web1", old, old))
	jobs := Tree{From: s.share + "/jobs", To: s.cache + "/copy", Link: s.cache + "/jobs"}
	pki := Tree{From: from, To: to}
	o := CopyOptions{Moved: []Tree{jobs}, Skip: func(p string) bool { return p == "private" }}
	write(t, from+"/private", "not this", 0o600)
	r := mustCopy(t, pki, o)
	if r.Files != 2 || r.Copied != 2 || len(r.Leading) != 1 || !strings.Contains(r.Leading[0], "elsewhere") {
		t.Errorf("%+v", r)
	}
	is(t, to+"/minions/web1", "key")
	is(t, to+"/master.pem", "private")
	for path, want := range map[string]string{"master.pem": to + "/m3.pem", "other.pem": to + "/m3.pem",
		"beside": "m3.pem", "job": s.cache + "/jobs/x", "away": s.share + "/elsewhere"} {
		if got, _ := os.Readlink(filepath.Join(to, path)); got != want {
			t.Errorf("%s leads to %s, want %s", path, got, want)
		}
	}
	if info, err := os.Stat(to + "/minions/web1"); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("%v, %v", info, err)
	}
	for path, mode := range map[string]os.FileMode{"m3.pem": 0o400, "empty": 0o750} {
		if info, err := os.Stat(filepath.Join(to, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if _, err := os.Lstat(to + "/private"); !errors.Is(err, os.ErrNotExist) {
		t.Error("copied what was to be left out")
	}
	if r := mustCopy(t, pki, o); r.Copied != 0 || r.Removed != 0 {
		t.Errorf("again: %+v", r)
	}
}

// A later pass brings what has changed, takes away what is gone, and finds what only looks the same.
func TestCopyAgain(t *testing.T) {
	s := newSite(t)
	tree := Tree{From: s.share + "/pki", To: s.top + "/local"}
	for _, name := range []string{"a", "b", "c", "d/e"} {
		write(t, filepath.Join(tree.From, name), name, 0o644)
	}
	mustCopy(t, tree, CopyOptions{})
	write(t, tree.From+"/a", "changed", 0o600)
	require.NoError(t, os.Remove(tree.From+"/b"))
	require.NoError(t, os.RemoveAll(tree.From+"/d"))
	write(t, tree.From+"/d", "a file now", 0o644)
	info, err := os.Stat(tree.To + "/c")
	require.NoError(t, err)
	write(t, tree.To+"/c", "X", 0o644)
	require.NoError(t, os.Chtimes(tree.To+"/c", info.ModTime(), info.ModTime()))
	if r := mustCopy(t, tree, CopyOptions{}); r.Copied != 2 || r.Removed != 1 {
		t.Errorf("%+v", r)
	}
	is(t, tree.To+"/a", "changed")
	is(t, tree.To+"/d", "a file now")
	is(t, tree.To+"/c", "X")
	if r := mustCopy(t, tree, CopyOptions{Settle: true}); r.Copied != 1 {
		t.Errorf("%+v", r)
	}
	is(t, tree.To+"/c", "c")
	write(t, tree.To+"/a", "in use", 0o644)
	write(t, tree.To+"/own", "in use", 0o644)
	write(t, tree.From+"/late", "late", 0o644)
	mustCopy(t, tree, CopyOptions{Keep: true})
	is(t, tree.To+"/a", "in use")
	is(t, tree.To+"/own", "in use")
	is(t, tree.To+"/late", "late")
}

func TestCopyEndsWithItsContext(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	tree := Tree{From: s.share + "/pki", To: s.top + "/local"}
	write(t, tree.From+"/a", "a", 0o644)
	write(t, tree.From+"/b", "b", 0o644)
	_, err := Copy(ctx, tree, CopyOptions{Tell: func(Report) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if r := mustCopy(t, tree, CopyOptions{}); r.Files != 2 {
		t.Errorf("%+v", r)
	}
}

func TestExchange(t *testing.T) {
	s := newSite(t)
	tree := Tree{From: s.share + "/jobs", To: s.cache + "/.copy", Link: s.cache + "/jobs"}
	write(t, tree.From+"/x", "shared", 0o644)
	mustCopy(t, tree, CopyOptions{})
	for range 2 { // the second time nothing is left to do
		require.NoError(t, Exchange(tree))
	}
	write(t, tree.Link+"/y", "own", 0o644)
	if _, err := os.Lstat(tree.From + "/y"); err == nil {
		t.Error("still on the share")
	}
	for range 2 {
		require.NoError(t, Restore(tree))
	}
	if text, err := os.Readlink(tree.Link); err != nil || text != tree.From {
		t.Error(text, err)
	}
	require.NoError(t, Exchange(tree))
	check.NoError(t, errors.Join(Forget(tree), Forget(tree), Exchange(tree)))
	is(t, tree.Link+"/y", "own")
}

func TestRoom(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a/b", "12345", 0o644)
	size, err := Measure(t.Context(), dir)
	if err != nil || size != (Size{Files: 1, Bytes: 5}) {
		t.Error(size, err)
	}
	check.NoError(t, Room(dir+"/not/there", Size{Files: 1}))
	if err := Room(dir, Size{Files: 1, Bytes: 1 << 60}); err == nil {
		t.Error("room for everything")
	}
}
