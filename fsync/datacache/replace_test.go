package datacache

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// bank is a directory of files whose content is given.
func bank(t *testing.T, files map[string]string) (root *os.Root, dir folder) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { root.Close() })
	require.NoError(t, root.Mkdir("mine", dirMode))
	for name, content := range files {
		require.NoError(t, root.WriteFile("mine/"+name, []byte(content), fileMode))
	}
	if dir, err = openFolder(root, "mine"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dir.close)
	return root, dir
}

// holds fails unless a bank has these files and no others.
func holds(t *testing.T, root *os.Root, want map[string]string) {
	t.Helper()
	names, err := listDir(root, "mine")
	if err != nil || len(names) != len(want) {
		t.Errorf("there are %q, %v", names, err)
	}
	for name, content := range want {
		if got, err := root.ReadFile("mine/" + name); string(got) != content || err != nil {
			t.Errorf("%s is %q, not %q: %v", name, got, content, err)
		}
	}
}

// A file that is open takes the place of nothing but itself, or of one with the same content.
func TestPutHeld(t *testing.T) {
	master := func(content string) func(*os.Root) error {
		return func(r *os.Root) error {
			return errors.Join(r.WriteFile("mine/b", []byte(content), fileMode), r.Rename("mine/b", "mine/a.p"))
		}
	}
	for _, c := range []struct {
		name   string
		master func(root *os.Root) error
		want   map[string]string
		err    error
	}{
		{"nothing since", func(*os.Root) error { return nil }, map[string]string{"a.p": "new"}, nil},
		{"written again as it was", master("old"), map[string]string{"a.p": "new"}, nil},
		{"something else", master("mas"), map[string]string{"a.p": "mas"}, errChanged},
		{"cut and written", func(r *os.Root) error { return r.WriteFile("mine/a.p", []byte("longer"), fileMode) },
			map[string]string{"a.p": "longer"}, errChanged},
		{"written in place", func(r *os.Root) error {
			return errors.Join(r.WriteFile("mine/a.p", []byte("mas"), fileMode),
				r.Chtimes("mine/a.p", time.Time{}, time.Unix(2, 0)))
		}, map[string]string{"a.p": "mas"}, errChanged},
		{"removed", func(r *os.Root) error { return r.Remove("mine/a.p") }, map[string]string{}, errChanged},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, dir := bank(t, map[string]string{"a.p": "old"})
			h, err := dir.hold("a.p", 100)
			require.NoError(t, err)
			defer h.close()
			require.NoError(t, c.master(root))
			_, err = dir.put(disk{uid: -1}, "a.p", []byte("new"), prior{h.raw, h.is}, time.Unix(1, 0))
			check.ErrorIs(t, err, c.err)
			holds(t, root, c.want)
		})
	}
}

// Files are the master's user's, whether they would be anyway or not.
func TestPutOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	root, dir := bank(t, nil)
	for _, id := range []int{0, 12345} {
		name := strings.Repeat("x", id/1000+1)
		if _, err := dir.put(disk{uid: id, gid: id}, name, []byte("new"), prior{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		info, err := root.Stat("mine/" + name)
		require.NoError(t, err)
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != id || int(st.Gid) != id || info.ModTime().Unix() != 1 {
			t.Errorf("%d: %d, %d, %s", id, st.Uid, st.Gid, info.ModTime())
		}
	}
}

// What was taken from the master goes back, unless it has done something since.
func TestGiveBack(t *testing.T) {
	const temp = tempPrefix + "x"
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name   string
		as     string // the name to give back
		master func(root *os.Root) error
		want   map[string]string
		lost   bool // not given back
	}{
		{"nothing since", "a.p", func(*os.Root) error { return nil }, map[string]string{"a.p": "master's"}, false},
		{"written again", "a.p", func(r *os.Root) error {
			return errors.Join(r.WriteFile("mine/b", []byte("newest"), fileMode), r.Rename("mine/b", "mine/a.p"))
		}, map[string]string{"a.p": "newest"}, false},
		{"removed", "a.p", func(r *os.Root) error { return r.Remove("mine/a.p") }, map[string]string{}, false},
		{"impossible", long, func(*os.Root) error { return nil }, map[string]string{"a.p": "ours", temp: "master's"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, dir := bank(t, map[string]string{"a.p": "ours", temp: "master's"})
			ours, _, err := dir.stat("a.p")
			if err = errors.Join(err, c.master(root)); err != nil {
				t.Fatal(err)
			}
			if err := dir.giveBack(temp, c.as, ours); errors.Is(err, errChanged) == c.lost || err == nil {
				t.Error(err)
			}
			holds(t, root, c.want)
		})
	}
}

// The same where a file was renamed to be removed.
func TestPutBack(t *testing.T) {
	const temp = tempPrefix + "x"
	root, _ := bank(t, map[string]string{temp: "master's"})
	check.ErrorIs(t, putBack(root, "mine/"+temp, "mine/a.p"), errChanged)
	holds(t, root, map[string]string{"a.p": "master's"})
	root, _ = bank(t, map[string]string{temp: "master's", "a.p": "newest"})
	check.ErrorIs(t, putBack(root, "mine/"+temp, "mine/a.p"), errChanged)
	holds(t, root, map[string]string{"a.p": "newest"})
	root, _ = bank(t, map[string]string{temp: "master's"})
	if err := putBack(root, "mine/"+temp, "mine/"+strings.Repeat("x", 300)); err == nil || errors.Is(err, errChanged) {
		t.Error(err)
	}
	holds(t, root, map[string]string{temp: "master's"})
}

// What a predecessor left that was killed is removed, wherever a layout has files; what this process is at work with
// stays.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		major int
		kind  Kind
		dirs  []string
	}{
		{3006, Data, []string{"minions/web1"}},
		{3006, Mine, []string{"minions/web1"}},
		{3008, Data, []string{"grains", "pillar"}},
		{3008, Mine, []string{"mine"}},
	} {
		w := newWorld(t)
		w.kind = c.kind
		dir := t.TempDir()
		n := w.add("a", c.major, dir)
		n.close()
		ours := tempName()
		for _, in := range c.dirs {
			n.file(filepath.Join(in, tempPrefix+"ABC"), nil)
			n.file(filepath.Join(in, ours), nil)
		}
		n.open()
		for _, in := range c.dirs {
			w.poll(in+" is swept", func() bool {
				names, err := os.ReadDir(filepath.Join(n.master.CacheDir, in))
				return err == nil && len(names) == 1
			})
			if _, err := os.Stat(filepath.Join(n.master.CacheDir, in, ours)); err != nil {
				t.Error(err)
			}
		}
		w.close()
	}
}

// A pillarenv that is written while the directory is listed is not forgotten, and one that is gone is.
func TestEnvsNotedMeanwhile(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	err = errors.Join(root.Mkdir(pillarBank, dirMode), root.WriteFile(pillarName("web1", "there"), nil, fileMode))
	require.NoError(t, err)
	l := &split{pillars: true, envs: envs{}}
	l.note("web1", "gone")
	if _, err := l.ids(root, func(string) bool { l.note("web1", "noted"); return false }); err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(slices.Values(l.names("web1")))
	if want := []string{"grains/web1.p", "pillar/web1.p", "pillar/web1:noted.p", "pillar/web1:there.p"}; !slices.Equal(got,
		want) {
		t.Errorf("%q", got)
	}
}
