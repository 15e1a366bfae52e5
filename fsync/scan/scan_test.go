package scan

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func scanDir(t testing.TB, dir string, opts Options) *Result {
	t.Helper()
	d, err := slotfs.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	if opts.Ignore, err = NewIgnore(DefaultIgnore()); err != nil {
		t.Fatal(err)
	}
	opts.Workers = 2
	res, err := Slot(context.Background(), d, opts)
	require.NoError(t, err)
	return res
}

func put(t testing.TB, dir, path, content string) {
	t.Helper()
	full := filepath.Join(dir, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
	require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
}

func age(t testing.TB, dir string) {
	t.Helper()
	time.Sleep(2 * raciness) // what is older than this is not racy
}

func paths(t testing.TB, res *Result) map[string]tree.Entry {
	t.Helper()
	out := map[string]tree.Entry{}
	require.NoError(t, tree.Walk(res.Objects, res.Dir,
		func(p string, e *tree.Entry) error { out[p] = *e; return nil }))
	return out
}

func TestScan_Entries(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "top.sls", "base:")
	put(t, dir, "a/b/\xff\xfe.txt", "odd")
	put(t, dir, ".git/config", "ignored")
	put(t, dir, "a/.x.sls.swp", "ignored")
	put(t, dir, "vcs/.git/x", "a directory with nothing else")
	put(t, dir, tree.OwnPrefix+"x/y", "ours")
	_ = os.Mkdir(filepath.Join(dir, "empty"), 0o700)
	_ = os.Symlink("/etc", filepath.Join(dir, "link"))
	got := paths(t, scanDir(t, dir, Options{}))
	want := []string{"top.sls", "a", "a/b", "a/b/\xff\xfe.txt", "empty", "link"}
	if len(got) != len(want) {
		t.Errorf("%d entries, want %d: %v", len(got), len(want), got)
	}
	for _, p := range want {
		if _, ok := got[p]; !ok {
			t.Errorf("%q is missing", p)
		}
	}
	if e := got["link"]; e.Type != tree.Symlink || e.Target != "/etc" {
		t.Errorf("the link is %+v", e)
	}
	if e := got["empty"]; e.Mode != 0o700 {
		t.Errorf("the empty directory is %+v", e)
	}
}

func TestUnchangedFilesAreNotRead(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		put(t, dir, fmt.Sprintf("d%d/f%d", i%3, i), fmt.Sprint("content", i))
	}
	age(t, dir)
	first := scanDir(t, dir, Options{})
	if again := scanDir(t, dir, Options{Last: first.Index}); again.Read != 0 || again.Dir != first.Dir {
		t.Errorf("%d files read, %v became %v", again.Read, first.Dir.Short(), again.Dir.Short())
	}
	put(t, dir, "d0/f0", "contenu0") // of the same size
	if again := scanDir(t, dir, Options{Last: first.Index}); again.Read != 1 || again.Dir == first.Dir {
		t.Errorf("%d files read, tree changed: %v", again.Read, again.Dir != first.Dir)
	}
}

func TestScan_RereadRacyFile(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "now")
	first := scanDir(t, dir, Options{})
	if !first.Index["f"].Racy {
		t.Skip("the scan took long")
	}
	check.Equal(t, scanDir(t, dir, Options{Last: first.Index}).Read, 1, "files read")
}

// What is looked at before the patterns changes nothing of what they match.
func TestIgnore_Match(t *testing.T) {
	names := []string{
		"", "a", ".git", ".gitx", "x~", "~", "4913", "49130", ".#x", "#x#", "#", ".x.swp", ".swx", ".x.swx", ".nfs0001",
		"[a]", "a]", `a\`, "*", "x.pyc", "é",
	}
	for _, patterns := range [][]string{DefaultIgnore(), {"*"}, {"[a]*", "x"}, {"*.pyc", `\*`}, {"a*", "*a", "?"}, {`*\]`},
		{}} {
		ig, err := NewIgnore(patterns)
		require.NoError(t, err)
		for _, name := range names {
			want := false
			for _, p := range patterns {
				ok, err := path.Match(p, name)
				require.NoError(t, err)
				want = want || ok
			}
			check.Equal(t, ig.Match("d/"+name, name), want, patterns, "of", name)
		}
	}
}

func TestScan_TooLargeFileKept(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "f", "small")
	before := scanDir(t, dir, Options{})
	known := paths(t, before)["f"]
	if err := os.Truncate(filepath.Join(dir, "f"), tree.MaxFile+1); err != nil {
		t.Skip(err)
	}
	after := scanDir(t, dir, Options{Known: func(p string) *tree.Entry { return &known }})
	if after.Dir != before.Dir || len(after.Problems) != 1 {
		t.Errorf("the tree changed: %v, problems %q", after.Dir != before.Dir, after.Problems)
	}
}

func BenchmarkUnchanged(b *testing.B) {
	dir := b.TempDir()
	for i := range 5000 {
		put(b, dir, fmt.Sprintf("a%d/b%d/f%d", i%10, i%50, i), fmt.Sprint("content", i))
	}
	age(b, dir)
	first := scanDir(b, dir, Options{})
	for b.Loop() {
		if r := scanDir(b, dir, Options{Last: first.Index}); r.Read != 0 {
			b.Fatal(r.Read)
		}
	}
}
