package apply

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// farDirs are directories on two file systems: of a slot, and of its area.
func farDirs(t *testing.T) (slotDir, areaDir string) {
	t.Helper()
	slotDir, areaDir = memoryDir(t), t.TempDir()
	a, err := slotfs.Open(areaDir)
	require.NoError(t, err)
	defer a.Close()
	b, err := slotfs.Open(slotDir)
	require.NoError(t, err)
	defer b.Close()
	if canRename(a, b) {
		t.Skip("/dev/shm and the temporary directory are one file system")
	}
	return slotDir, areaDir
}

// farArea is an area as a slot has it in which everything is below a mount.
func farArea(t tester, top, from string) *Area {
	t.Helper()
	live, err := slotfs.Open(from)
	require.NoError(t, err)
	path, err := os.MkdirTemp(top, "")
	require.NoError(t, err)
	a := &Area{Live: live}
	require.NoError(t, a.openPath(path))
	return a
}

// hidden lists what is left of ours in a slot.
func hidden(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), tree.OwnPrefix) {
			names = append(names, d.Name())
		}
		return nil
	})
	return names
}

func TestSwitcher_FarAppliesScannedTree(t *testing.T) {
	top, areas := farDirs(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to, _ := temp(t, top)
		drawTree(t, "from", from)
		drawTree(t, "to", to)
		p := prepareIn(t, farArea(t, areas, from), from, to)
		defer p.area.Close()
		sw := Switcher{Area: p.area, UID: -1, GID: -1}
		out, err := sw.Run(&p.plan)
		if err != nil || len(out.Kept) > 0 || len(out.Aside) > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		if got, want := look(t, from), look(t, to); got.Dir != want.Dir {
			t.Fatal("another tree")
		}
		for _, e := range out.Displaced {
			kept, err := os.ReadFile(filepath.Join(p.area.Path, "keep", e.Content().String()))
			if err != nil || int64(len(kept)) != e.Size() {
				t.Fatalf("displaced: %d bytes of %d, %v", len(kept), e.Size(), err)
			}
		}
		if left := hidden(from); left != nil {
			t.Fatalf("left: %v", left)
		}
	})
}

// No edit is lost, and none is hidden, whenever it comes and whenever the switch is killed.
func TestSwitcher_FarKeepsEditsWhenKilled(t *testing.T) {
	top, areas := farDirs(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to, _ := temp(t, top)
		drawTree(t, "from", from)
		drawTree(t, "to", to)
		p := prepareIn(t, farArea(t, areas, from), from, to)
		defer p.area.Close()
		op := &operator{t: t, dir: from, beside: filepath.Join(filepath.Dir(from), "beside")}
		edits := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 4).Draw(t, "edits") // the steps before which there is one
		kills := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 3).Draw(t, "kills")
		steps := 0
		run := func() (Outcome, error) {
			sw := Switcher{Area: p.area, UID: -1, GID: -1, Step: func() error {
				steps++
				if slices.Contains(edits, steps) {
					op.edit()
				}
				if slices.Contains(kills, steps) {
					return errKilled
				}
				return nil
			}}
			return sw.Run(&p.plan)
		}
		out, err := run()
		for ; errors.Is(err, errKilled); out, err = run() {
		}
		require.NoError(t, err)
		if _, err := OpenStage(context.Background(), p.area, &Plan{Slot: slot}, -1, -1); err != nil {
			t.Fatal(err)
		}
		if left := hidden(from); left != nil {
			t.Fatalf("left: %v", left)
		}
		op.check(p.area, out)
	})
}

// An edit that was taken out and cannot be given back is put aside, and stays where it is when even that fails.
func TestSwitcher_FarEditIsNotGivenBack(t *testing.T) {
	for _, c := range []struct {
		name  string
		verb  Verb
		aside bool // it can be put aside
	}{{"replaced", Place, true}, {"removed", Remove, true}, {"replaced, no place", Place, false},
		{"removed, no place", Remove, false}} {
		t.Run(c.name, func(t *testing.T) {
			top, areas := farDirs(t)
			from, to := filepath.Join(top, "from"), filepath.Join(top, "to")
			path := filepath.Join(from, "f")
			write := func(path, text string) {
				t.Helper()
				err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".new", []byte(text), 0o644),
					os.Rename(path+".new", path))
				require.NoError(t, err)
			}
			write(path, "old")
			write(filepath.Join(to, "g"), "other")
			if c.verb == Place {
				write(filepath.Join(to, "f"), "new")
			}
			p := prepareIn(t, farArea(t, areas, from), from, to)
			defer p.area.Close()
			saved := false
			run := func() (Outcome, error) {
				sw := Switcher{Area: p.area, UID: -1, GID: -1, Step: func() error {
					now, err := os.ReadFile(path)
					kept, _ := os.ReadDir(filepath.Join(p.area.Path, "keep"))
					switch {
					case err == nil && string(now) == "old" && len(kept) > 0: // it is saved
						write(path, "edit")
						saved = true
					case saved && (err != nil || string(now) == "new"): // the edit has been taken out
						if c.verb == Place {
							_ = os.Remove(path)
						} else {
							write(path, "edited again")
						}
						if !c.aside {
							_ = p.area.Aside.Close()
						}
						saved = false
					}
					return nil
				}}
				return sw.Run(&p.plan)
			}
			out, err := run()
			if !c.aside {
				left := hidden(from)
				if err == nil || len(left) != 1 {
					t.Fatalf("left: %v, %v", left, err)
				}
				if text, err := os.ReadFile(filepath.Join(from, left[0])); string(text) != "edit" {
					t.Errorf("%q, %v", text, err)
				}
				if p.area.Aside, err = slotfs.Open(filepath.Join(p.area.Path, "aside")); err != nil {
					t.Fatal(err)
				}
				out, err = run()
			}
			if err != nil || len(out.Aside) != 1 || !slices.Contains(out.Kept, "f") {
				t.Fatalf("%+v, %v", out, err)
			}
			if text, err := os.ReadFile(filepath.Join(p.area.Path, "aside", out.Aside[0].ID)); string(text) != "edit" {
				t.Errorf("%q, %v", text, err)
			}
			if left := hidden(from); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// Content that is kept already stays whole when it is to be kept once more and cannot be copied.
func TestSwitcher_FarKeepStaysWhole(t *testing.T) {
	top, areas := farDirs(t)
	from, to := filepath.Join(top, "from"), filepath.Join(top, "to")
	err := errors.Join(os.Mkdir(from, 0o755), os.Mkdir(to, 0o755), os.WriteFile(from+"/f", []byte("old"), 0o644))
	require.NoError(t, err)
	p := prepareIn(t, farArea(t, areas, from), from, to)
	defer p.area.Close()
	kept := filepath.Join(p.area.Path, "keep", p.plan.Ops[0].Old.Content().String())
	// that the copy fails: its place is a directory's
	require.NoError(t, errors.Join(os.WriteFile(kept, []byte("old"), 0o600), p.area.Stage.Mkdir("saving", 0o700)))
	sw := Switcher{Area: p.area, UID: -1, GID: -1}
	if _, err := sw.Run(&p.plan); err == nil {
		t.Fatal("nothing failed")
	}
	for _, path := range []string{kept, from + "/f"} {
		if text, err := os.ReadFile(path); string(text) != "old" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// What only a rename could move, a directory that was put aside or a pipe, stays where it is.
func TestSwitcher_FarRestoresOnlyFiles(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"pipe":      func(path string) error { return unix.Mkfifo(path, 0o600) },
		"file":      func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
		"symlink":   func(path string) error { return os.Symlink("x", path) },
	} {
		t.Run(name, func(t *testing.T) {
			from, areas := farDirs(t)
			area := farArea(t, areas, from)
			defer area.Close()
			require.NoError(t, make(filepath.Join(area.Path, "aside", "one")))
			st, err := area.Aside.Stat("one")
			require.NoError(t, err)
			plan := Plan{Slot: slot, Ops: []Op{{
				Verb: Restore, Path: "back", Known: true, Entry: tree.Entry{Type: st.Type, Mode: st.Mode}, Stage: "one",
				StageIno: st.Ino, StageMod: st.Mtime,
			}}}
			sw := Switcher{Area: area, UID: -1, GID: -1}
			out, err := sw.Run(&plan)
			require.NoError(t, err)
			_, aside := os.Lstat(filepath.Join(area.Path, "aside", "one"))
			_, back := os.Lstat(filepath.Join(from, "back"))
			moved := st.Type == tree.File || st.Type == tree.Symlink
			if (back == nil) != moved || (aside == nil) == moved || (len(out.Kept) == 0) != moved {
				t.Errorf("aside %v, back %v, %+v", aside, back, out)
			}
			if left := hidden(from); left != nil {
				t.Errorf("left: %v", left)
			}
		})
	}
}
