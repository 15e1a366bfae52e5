package apply

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/fsync/tree"
	"saltclusterd/integration/require"
)

// TestVerify has files as a file system may have them after a power failure, and as operators may.
func TestVerify(t *testing.T) {
	const there, fresh = "d/there", "d/fresh"
	zero := func(path string) error {
		i, err := os.Stat(path)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path, make([]byte, i.Size()), 0o600), os.Chtimes(path, time.Time{}, i.ModTime()))
	}
	for name, tc := range map[string]struct {
		before, after func(live, staged func(string) string) error // the switch
		lost, kept    []string                                     // of the lost ones, where the old content still is
		gone          []string
	}{
		"all is well": {},
		"placed and empty": {
			after: func(live, _ func(string) string) error {
				return errors.Join(emptied(live(there)), emptied(live(fresh)))
			},
			lost: []string{there, fresh}, gone: []string{there, fresh},
		},
		"placed and full of zeros": {
			after: func(live, _ func(string) string) error { return zero(live(there)) },
			lost:  []string{there}, gone: []string{there},
		},
		"staged and empty": {
			before: func(_, staged func(string) string) error {
				return errors.Join(emptied(staged(there)), emptied(staged(fresh)))
			},
			lost: []string{there, fresh}, kept: []string{there}, gone: []string{fresh},
		},
		"neither staged nor placed": {
			before: func(_, staged func(string) string) error {
				return errors.Join(os.Remove(staged(there)), os.Remove(staged(fresh)))
			},
			lost: []string{there, fresh}, kept: []string{there}, gone: []string{fresh},
		},
		"removed by an operator": {
			after: func(live, _ func(string) string) error { return os.Remove(live(fresh)) },
			lost:  []string{fresh}, gone: []string{fresh},
		},
		"edited after the switch": {
			after: func(live, _ func(string) string) error {
				return errors.Join(os.WriteFile(live(there), []byte("edited"), 0o644),
					os.Chtimes(live(there), time.Time{}, time.Now().Add(time.Second)))
			},
		},
		"edited before the switch": {
			before: func(live, _ func(string) string) error {
				return errors.Join(os.WriteFile(live(there), []byte("edited"), 0o644),
					os.Chtimes(live(there), time.Time{}, time.Now().Add(time.Second)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := t.TempDir(), t.TempDir()
			for path, content := range map[string]string{
				filepath.Join(from, there): "old", filepath.Join(to, there): "newer", filepath.Join(to, fresh): "fresh",
				filepath.Join(to, "other"): "other",
			} {
				require.NoError(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755),
					os.WriteFile(path, []byte(content), 0o644)))
			}
			p := prepare(t, t.TempDir(), from, to)
			defer p.area.Close()
			live := func(path string) string { return filepath.Join(from, path) }
			staged := func(path string) string {
				i := slices.IndexFunc(p.plan.Ops, func(op Op) bool { return op.Path == path })
				return filepath.Join(p.area.Path, "stage", p.plan.Ops[i].Stage)
			}
			if tc.before != nil {
				require.NoError(t, tc.before(live, staged))
			} else {
				sw := Switcher{Area: p.area, UID: -1, GID: -1}
				if _, err := sw.Run(&p.plan); err != nil {
					t.Fatal(err)
				}
			}
			if tc.after != nil {
				require.NoError(t, tc.after(live, staged))
			}
			for range 2 { // it may be cut off and begun anew
				lost, err := Verify(t.Context(), p.area, &p.plan)
				require.NoError(t, err)
				if got := slices.Sorted(maps.Keys(lost)); !slices.Equal(got, slices.Sorted(slices.Values(tc.lost))) {
					t.Errorf("lost: %q, want %q", got, tc.lost)
				}
				for path, e := range lost {
					if kept := slices.Contains(tc.kept, path); kept != (e != nil) || kept &&
						e.Content() != (&tree.Entry{Chunks: []tree.Chunk{{Hash: tree.Sum([]byte("old"))}}}).Content() {
						t.Errorf("%s: %+v", path, e)
					}
				}
			}
			sw := Switcher{Area: p.area, UID: -1, GID: -1}
			if _, err := sw.Run(&p.plan); err != nil { // the rest
				t.Fatal(err)
			}
			for _, path := range tc.gone {
				if _, err := os.Lstat(live(path)); !os.IsNotExist(err) {
					t.Errorf("%s: %v", path, err)
				}
			}
			for _, path := range tc.kept {
				if b, err := os.ReadFile(live(path)); string(b) != "old" {
					t.Errorf("%s: %q, %v", path, b, err)
				}
			}
			if b, err := os.ReadFile(live("other")); string(b) != "other" {
				t.Errorf("%q, %v", b, err)
			}
		})
	}
}
