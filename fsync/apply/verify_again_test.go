package apply

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// cutOff is a switch from one tree to another that is cut off at its second step, after the first path was exchanged.
func cutOff(t *testing.T, aside string, lay func(from,
	to string) error) (p prepared, live, staged func(string) string) {
	t.Helper()
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, lay(from, to))
	p = prepare(t, t.TempDir(), from, to)
	t.Cleanup(p.area.Close)
	for i := range p.plan.Ops {
		if aside != "" {
			p.plan.Ops[i].Aside, p.plan.Ops[i].AsideID = aside, "ID"
		}
	}
	steps := 0
	sw := Switcher{Area: p.area, UID: -1, GID: -1, Step: func() error {
		if steps++; steps == 2 {
			return errKilled
		}
		return nil
	}}
	out, err := sw.Run(&p.plan)
	out.Flush.Close()
	if !errors.Is(err, errKilled) {
		t.Fatal(err)
	}
	live = func(path string) string { return filepath.Join(from, path) }
	staged = func(path string) string {
		i := slices.IndexFunc(p.plan.Ops, func(op Op) bool { return op.Verb == Place && op.Path == path })
		return filepath.Join(p.area.Path, "stage", p.plan.Ops[i].Stage)
	}
	return p, live, staged
}

// goOn verifies a switch so many times, each of which has to find a path lost or not, and carries out the rest.
func goOn(t *testing.T, p *prepared, times int, path string, isLost bool) Outcome {
	t.Helper()
	for n := range times {
		lost, err := Verify(t.Context(), p.area, &p.plan)
		require.NoError(t, err)
		if _, ok := lost[path]; ok != isLost {
			t.Errorf("time %d: lost %v, want %v", n, ok, isLost)
		}
	}
	sw := Switcher{Area: p.area, UID: -1, GID: -1}
	out, err := sw.Run(&p.plan)
	out.Flush.Close()
	require.NoError(t, err)
	return out
}

// emptied is a file as a power failure leaves one, with the times it had.
func emptied(path string) error {
	i, err := os.Stat(path)
	if err != nil {
		return err
	}
	return errors.Join(os.Truncate(path, 0), os.Chtimes(path, time.Time{}, i.ModTime()))
}

func write(path, content string) error { return os.WriteFile(path, []byte(content), 0o644) }

// What was to be put aside was taken out, and what replaces it is lost or was removed: it is put aside all the same,
// however often that is begun anew.
func TestVerify_ReplacementLost(t *testing.T) {
	for name, lose := range map[string]func(live string) error{"lost": emptied, "removed": os.Remove} {
		t.Run(name, func(t *testing.T) {
			const own = "only on this disk"
			p, live, staged := cutOff(t, "this node had it", func(from, to string) error {
				return errors.Join(write(from+"/f", own), write(to+"/f", "the cluster's"))
			})
			if b, err := os.ReadFile(staged("f")); string(b) != own {
				t.Fatalf("not exchanged: %q, %v", b, err)
			}
			require.NoError(t, lose(live("f")))
			goOn(t, &p, 2, "f", true)
			if b, err := os.ReadFile(filepath.Join(p.area.Path, "aside", "ID")); string(b) != own {
				t.Errorf("put aside: %q, %v", b, err)
			}
		})
	}
}

// A symlink was replaced by a file that is lost; the symlink waits to be displaced.
func TestVerify_SymlinkReplaced(t *testing.T) {
	p, live, _ := cutOff(t, "", func(from, to string) error {
		return errors.Join(os.Symlink("x", from+"/f"), write(to+"/f", "the cluster's"))
	})
	require.NoError(t, emptied(live("f")))
	goOn(t, &p, 2, "f", true)
	if _, err := os.Lstat(live("f")); err == nil {
		t.Error("there is something")
	}
}

// A directory gives way to a file that the disk does not have.
func TestVerify_DirectoryReplaced(t *testing.T) {
	for name, lose := range map[string]func(string) error{"missing": os.Remove, "empty": emptied} {
		t.Run(name, func(t *testing.T) {
			p, live, staged := cutOff(t, "", func(from, to string) error {
				return errors.Join(os.MkdirAll(from+"/d", 0o755), write(from+"/d/x", "x"), write(to+"/d", "a file now"))
			})
			require.NoError(t, lose(staged("d")))
			goOn(t, &p, 2, "d", true)
			if _, err := os.Lstat(live("d")); err == nil {
				t.Error("there is something")
			}
		})
	}
}

// The numbers of file systems may be others at the next start, also where a directory is gone by then.
func TestRenumber_DirectoryGone(t *testing.T) {
	p, live, _ := cutOff(t, "", func(from, to string) error {
		return errors.Join(os.MkdirAll(from+"/d", 0o755), write(from+"/d/f", "of the cluster"))
	})
	require.NoError(t, os.RemoveAll(live("d")))
	for i := range p.plan.Ops {
		if w := p.plan.Ops[i].Was; w != nil {
			w.Dev += 7
		}
	}
	require.NoError(t, Renumber(p.area, &p.plan))
	if out := goOn(t, &p, 0, "", false); len(out.Aside) > 0 {
		t.Errorf("put aside: %+v", out.Aside)
	}
}
