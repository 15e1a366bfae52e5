package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// operator edits files at any moment of a switch, and knows what must not get lost.
type operator struct {
	t      *rapid.T
	dir    string
	beside string // on the same file system
	mine   []string
	n      int
}

// edit saves a file of the slot as an editor does, or removes it.
func (o *operator) edit() {
	var paths []string
	_ = filepath.WalkDir(o.dir, func(p string, d fs.DirEntry, err error) error {
		// No operator edits our temporary files, which a kill leaves and the next run removes.
		if err == nil && d.Type().IsRegular() && !strings.HasPrefix(d.Name(), tree.OwnPrefix) {
			paths = append(paths, p)
		}
		return nil
	})
	if len(paths) == 0 {
		return
	}
	path := rapid.SampledFrom(paths).Draw(o.t, "edited")
	old, _ := os.ReadFile(path)
	o.mine = slices.DeleteFunc(o.mine, func(s string) bool { return s == string(old) }) // the operator's own decision
	if rapid.IntRange(0, 3).Draw(o.t, "removed") == 0 {
		_ = os.Remove(path)
		return
	}
	o.n++
	text := fmt.Sprintf("edit number %d", o.n)
	require.NoError(o.t, errors.Join(os.WriteFile(o.beside, []byte(text), 0o644), os.Rename(o.beside, path)))
	o.mine = append(o.mine, text)
}

// check looks for the operator's edits in the slot, and in what is listed as put aside.
func (o *operator) check(area *Area, out Outcome) {
	found := map[string]bool{}
	read := func(path string) {
		_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				b, _ := os.ReadFile(p)
				found[string(b)] = true
			}
			return nil
		})
	}
	read(o.dir)
	for _, a := range out.Aside {
		read(filepath.Join(area.Path, "aside", a.ID))
	}
	for _, text := range o.mine {
		if !found[text] {
			o.t.Fatalf("%q is lost; aside: %+v, kept: %q", text, out.Aside, out.Kept)
		}
	}
}

func TestSwitcher_KeepsEditsWhenKilled(t *testing.T) {
	top := memoryDir(t)
	rapid.Check(t, func(t *rapid.T) {
		from, to, state := temp(t, top)
		drawTree(t, "from", from)
		drawTree(t, "to", to)
		p := prepare(t, state, from, to)
		defer p.area.Close()
		op := &operator{t: t, dir: from, beside: filepath.Join(filepath.Dir(from), "beside")}
		edits := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 3).Draw(t, "edits") // the steps before which there is one
		kills := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 3).Draw(t, "kills")
		steps := 0
		sw := func() *Switcher {
			return &Switcher{Area: p.area, UID: -1, GID: -1, Step: func() error {
				steps++
				if slices.Contains(edits, steps) {
					op.edit()
				}
				if slices.Contains(kills, steps) {
					return errKilled
				}
				return nil
			}}
		}
		out, err := sw().Run(&p.plan)
		for ; errors.Is(err, errKilled); out, err = sw().Run(&p.plan) {
			if rapid.Bool().Draw(t, "edited while it was down") {
				op.edit()
			}
		}
		require.NoError(t, err)
		// what is left is removed
		if _, err := OpenStage(context.Background(), p.area, &Plan{Slot: slot}, -1, -1); err != nil {
			t.Fatal(err)
		}
		op.check(p.area, out)
	})
}

// A directory that an operator makes anew each time a switch is killed, where the cluster has a file now, is put aside
// each time.
func TestSwitcher_DirectoryMadeAnew(t *testing.T) {
	top := t.TempDir()
	from, to := filepath.Join(top, "from"), filepath.Join(top, "to")
	write := func(path string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(path), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(from, "d/known"))
	write(filepath.Join(to, "d"))
	p := prepare(t, filepath.Join(top, "state"), from, to)
	defer p.area.Close()
	killed := func() error {
		if _, err := os.Stat(filepath.Join(from, "d")); err != nil { // it was put aside just now
			return errKilled
		}
		return nil
	}
	for _, name := range []string{"one", "two", "three"} {
		write(filepath.Join(from, "d", name))
		sw := Switcher{Area: p.area, UID: -1, GID: -1, Step: killed}
		if _, err := sw.Run(&p.plan); !errors.Is(err, errKilled) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	sw := Switcher{Area: p.area, UID: -1, GID: -1}
	out, err := sw.Run(&p.plan)
	require.NoError(t, err)
	if text, err := os.ReadFile(filepath.Join(from, "d")); err != nil || string(text) != filepath.Join(to, "d") {
		t.Errorf("d: %q, %v", text, err)
	}
	for i, name := range []string{"one", "two", "three"} {
		if len(out.Aside) != 3 {
			t.Fatalf("aside: %+v", out.Aside)
		}
		if _, err := os.Stat(filepath.Join(p.area.Path, "aside", out.Aside[i].ID, name)); err != nil {
			t.Error(err)
		}
	}
}
