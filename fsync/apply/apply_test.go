package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

var slot = tree.Slot{Kind: tree.FileRoots, Env: "base"}

// drawTree makes a directory with a few files, links and directories; names repeat so that types change between two.
func drawTree(t *rapid.T, label, dir string) {
	names := rapid.SampledFrom([]string{"a", "b", "c\xff", "d"})
	for i := range rapid.IntRange(0, 9).Draw(t, label) {
		depth := rapid.IntRange(0, 2).Draw(t, "depth")
		path := dir
		for range depth {
			path = filepath.Join(path, names.Draw(t, "dir"))
			_ = os.Mkdir(path, 0o755) // a file may be there: then nothing comes of it
		}
		path = filepath.Join(path, names.Draw(t, "name"))
		switch rapid.IntRange(0, 3).Draw(t, "what") {
		case 0:
			_ = os.Mkdir(path, os.FileMode(rapid.SampledFrom([]int{0o755, 0o700}).Draw(t, "mode")))
		case 1:
			_ = os.Symlink(names.Draw(t, "target"), path)
		default:
			mode := os.FileMode(rapid.SampledFrom([]int{0o644, 0o600, 0o755}).Draw(t, "mode"))
			if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
				continue
			}
			_ = os.WriteFile(path, fmt.Append(nil, label, i%3), mode)
		}
	}
}

func snapshot(dir string) map[string]string {
	out := map[string]string{}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(p, dir)
		if err != nil || rel == "" {
			return nil
		}
		info, _ := d.Info()
		content := ""
		switch {
		case d.Type() == fs.ModeSymlink:
			content, _ = os.Readlink(p)
		case d.Type().IsRegular():
			b, _ := os.ReadFile(p)
			content = string(b)
		}
		out[rel] = info.Mode().String() + " " + content
		return nil
	})
	return out
}

type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

func look(t tester, dir string) *scan.Result {
	t.Helper()
	d, err := slotfs.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	res, err := scan.Slot(context.Background(), d, scan.Options{Workers: 1})
	require.NoError(t, err)
	return res
}

// prepared is a plan from one directory's content to another's, with everything staged.
type prepared struct {
	area *Area
	plan Plan
}

func prepare(t tester, state, from, to string) prepared {
	t.Helper()
	area, err := OpenArea(state, slot, from)
	require.NoError(t, err)
	return prepareIn(t, area, from, to)
}

// prepareIn plans and stages in an area.
func prepareIn(t tester, area *Area, from, to string) prepared {
	t.Helper()
	a, b := look(t, from), look(t, to)
	plan, err := Make(tree.Both{First: a.Objects, Second: b.Objects}, slot, a.Dir, b.Dir, a.Index,
		func(string) string { return "" })
	require.NoError(t, err)
	st, err := OpenStage(context.Background(), area, &plan, -1, -1)
	require.NoError(t, err)
	for path, item := range b.Index {
		if item.Type != tree.File || len(item.Chunks) == 0 {
			continue
		}
		content, err := os.ReadFile(filepath.Join(to, path))
		require.NoError(t, err)
		for _, c := range item.Chunks {
			require.NoError(t, st.Put(c.Hash, content[:c.Size]))
			content = content[c.Size:]
		}
	}
	require.NoError(t, st.Finish())
	return prepared{area, plan}
}

func temp(t *rapid.T, top string) (from, to, state string) {
	dir, err := os.MkdirTemp(top, "")
	require.NoError(t, err)
	from, to, state = filepath.Join(dir, "from"), filepath.Join(dir, "to"), filepath.Join(dir, "state")
	for _, d := range []string{from, to} {
		require.NoError(t, os.Mkdir(d, 0o755))
	}
	return from, to, state
}

// memoryDir is a directory in memory where there is one: these tests flush files again and again.
func memoryDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "apply")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestSwitcher_AppliesScannedTree(t *testing.T) {
	top := memoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to, state := temp(t, top)
		drawTree(t, "from", from)
		drawTree(t, "to", to)
		p := prepare(t, state, from, to)
		defer p.area.Close()
		if edited, unseen := Stale(p.area, &p.plan); edited != "" || unseen != "" {
			t.Fatalf("%q looks edited, %q as if nobody had looked", edited, unseen)
		}
		sw := Switcher{Area: p.area, UID: -1, GID: -1}
		out, err := sw.Run(&p.plan)
		if err != nil || len(out.Kept) > 0 || len(out.Aside) > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		if a, b := snapshot(from), snapshot(to); !maps.Equal(a, b) {
			t.Fatalf("%v\n is not\n%v", a, b)
		}
		if look(t, from).Dir != look(t, to).Dir {
			t.Fatal("equal content has another hash")
		}
	})
}

var errKilled = errors.New("killed")

func TestSwitcher_KilledAnywhere(t *testing.T) {
	top := memoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to, state := temp(t, top)
		drawTree(t, "from", from)
		drawTree(t, "to", to)
		p := prepare(t, state, from, to)
		defer p.area.Close()
		runs := 0
		for limit := 0; ; limit++ { // each run may take one step more than the last
			steps := 0
			sw := Switcher{Area: p.area, UID: -1, GID: -1, Step: func() error {
				if steps++; steps > limit {
					return errKilled
				}
				return nil
			}}
			out, err := sw.Run(&p.plan)
			if err == nil {
				if len(out.Kept) > 0 {
					t.Fatalf("after %d runs it kept %q", runs, out.Kept)
				}
				break
			}
			if runs++; !errors.Is(err, errKilled) || runs > 500 {
				t.Fatal(err)
			}
		}
		if a, b := snapshot(from), snapshot(to); !maps.Equal(a, b) {
			t.Fatalf("after %d runs\n%v\n is not\n%v", runs, a, b)
		}
	})
}

func TestSwitcher_KeepsEdits(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, name := range []string{"replaced", "removed", "free"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("old"), 0o644))
	}
	for _, name := range []string{"replaced", "free", "made"} {
		require.NoError(t, os.WriteFile(filepath.Join(to, name), []byte("new"), 0o644))
	}
	p := prepare(t, t.TempDir(), from, to)
	defer p.area.Close()
	for _, name := range []string{"replaced", "removed", "made"} {
		require.NoError(t, os.WriteFile(filepath.Join(from, name), []byte("edited"), 0o644))
	}
	if edited, unseen := Stale(p.area, &p.plan); edited == "" || unseen != "" && unseen != "made" {
		t.Errorf("before the switch %q looks edited, %q as if nobody had looked", edited, unseen)
	}
	sw := Switcher{Area: p.area, UID: -1, GID: -1}
	out, err := sw.Run(&p.plan)
	if err != nil || len(out.Kept) != 3 {
		t.Fatalf("%+v, %v", out, err)
	}
	for name, want := range map[string]string{"replaced": "edited", "removed": "edited", "made": "edited", "free": "new"} {
		if b, _ := os.ReadFile(filepath.Join(from, name)); string(b) != want {
			t.Errorf("%s is %q, want %q", name, b, want)
		}
	}
}

func TestStagedContentIsFoundAgain(t *testing.T) {
	from, to, state := t.TempDir(), t.TempDir(), t.TempDir()
	for i := range 3 {
		require.NoError(t, os.WriteFile(filepath.Join(to, fmt.Sprint(i)), fmt.Append(nil, "content", i), 0o644))
	}
	p := prepare(t, state, from, to)
	defer p.area.Close()
	require.NoError(t, os.WriteFile(filepath.Join(p.area.Path, "stage", p.plan.Ops[0].Stage), []byte("damaged!"),
		0o600))
	require.NoError(t, os.WriteFile(filepath.Join(p.area.Path, "stage", "left over"), nil, 0o600))
	st, err := OpenStage(context.Background(), p.area, &p.plan, -1, -1)
	if err != nil || len(st.Missing()) != 1 {
		t.Fatalf("%d pieces are missing, %v", len(st.Missing()), err)
	}
	if _, err := os.Stat(filepath.Join(p.area.Path, "stage", "left over")); !os.IsNotExist(err) {
		t.Errorf("what nothing needs: %v", err)
	}
	if err := st.Finish(); err == nil {
		t.Error("a stage with missing content is finished")
	}
}

// A little is on the disk before a switch; for much nobody waits.
func TestLittleIsFlushed(t *testing.T) {
	for name, tc := range map[string]struct {
		files, size int
		flushed     bool
	}{
		"one":         {1, 10, true},
		"many":        {flushFiles + 1, 10, false},
		"a large one": {1, flushBytes + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			for i := range tc.files {
				require.NoError(t, os.WriteFile(filepath.Join(to, fmt.Sprint(i)), make([]byte, tc.size), 0o644))
			}
			p := prepare(t, t.TempDir(), from, to)
			defer p.area.Close()
			st, err := OpenStage(t.Context(), p.area, &p.plan, -1, -1)
			require.NoError(t, err)
			require.NoError(t, st.Finish())
			if done, err := st.Flush(); err != nil || done != tc.flushed {
				t.Errorf("flushed: %v, %v", done, err)
			}
		})
	}
}

// Nothing is written through a directory that was replaced by a symlink.
func TestSwitcher_FollowsNoSymlink(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	for _, d := range []string{from, to} {
		require.NoError(t, os.Mkdir(filepath.Join(d, "d"), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(to, "d/f"), []byte("x"), 0o644))
	p := prepare(t, t.TempDir(), from, to)
	defer p.area.Close()
	require.NoError(t, os.Remove(filepath.Join(from, "d")))
	require.NoError(t, os.Symlink(outside, filepath.Join(from, "d")))
	sw := Switcher{Area: p.area, UID: -1, GID: -1}
	if out, err := sw.Run(&p.plan); err != nil || len(out.Kept) != 1 {
		t.Errorf("%+v, %v", out, err)
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("written outside: %v", left)
	}
}
