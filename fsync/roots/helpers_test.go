package roots

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/integration/require"
)

// testTimeout is for machines much slower than ours.
const testTimeout = 60 * time.Second

func (n *testNode) path(p string) string { return filepath.Join(n.dirs[n.w.slots[0]], p) }

func (n *testNode) write(p, content string) {
	n.w.t.Helper()
	require.NoError(n.w.t, os.MkdirAll(filepath.Dir(n.path(p)), 0o755))
	temp := n.path(filepath.Dir(p) + "/.#" + filepath.Base(p)) // ignored, as an editor's
	require.NoError(n.w.t, os.WriteFile(temp, []byte(content), 0o644))
	require.NoError(n.w.t, os.Rename(temp, n.path(p)))
}

func (n *testNode) remove(p string) {
	n.w.t.Helper()
	require.NoError(n.w.t, os.RemoveAll(n.path(p)))
}

// disk lists what is in all slots: "file mode content", "dir mode", "link text".
func (n *testNode) disk() map[string]string {
	out := map[string]string{}
	for slot, dir := range n.dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			rel := slot.String() + "/" + strings.TrimPrefix(strings.TrimPrefix(p, dir), "/")
			switch {
			case err != nil || p == dir:
				return nil
			case strings.HasPrefix(d.Name(), ".saltcluster-") && d.IsDir():
				return fs.SkipDir
			case d.IsDir():
				i, _ := d.Info()
				if i != nil {
					out[rel] = fmt.Sprintf("dir %o", i.Mode().Perm())
				}
			case d.Type() == fs.ModeSymlink:
				text, _ := os.Readlink(p)
				out[rel] = "link " + text
			default:
				b, _ := os.ReadFile(p)
				if i, _ := d.Info(); i != nil {
					out[rel] = fmt.Sprintf("file %o %d %.40s", i.Mode().Perm(), len(b), b)
				}
			}
			return nil
		})
	}
	return out
}

// has says whether a file of the first slot has some content.
func (n *testNode) has(p, content string) bool {
	b, err := os.ReadFile(n.path(p))
	return err == nil && string(b) == content
}

func (n *testNode) lacks(p string) bool {
	_, err := os.Lstat(n.path(p))
	return os.IsNotExist(err)
}

// await waits for a condition.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	w.awaitFor(testTimeout, what, ok)
}

func (w *world) awaitFor(within time.Duration, what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			for id, n := range w.nodes {
				if n.store != nil {
					w.t.Logf("%s: %+v", id, n.store.Status())
				}
			}
			w.t.Fatalf("waited in vain: %s", what)
		}
	}
}

// awaitEqual waits until all nodes that run have the head, nothing to propose, and the same files.
func (w *world) awaitEqual() {
	w.t.Helper()
	w.await("all nodes have the same files", func() bool {
		var first map[string]string
		for _, n := range w.nodes {
			if n.store == nil {
				continue
			}
			st := n.store.Status()
			if !st.CaughtUp || st.Edited || st.Base != st.Head {
				return false
			}
			disk := n.disk()
			if first == nil {
				first = disk
			}
			if !maps.Equal(first, disk) {
				return false
			}
		}
		return true
	})
}

// forget removes a node that is closed.
func (w *world) forget(n *testNode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, n.id)
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.revs)
}

// Stable says whether live is the head and has so many files.
func (s Status) Stable(files int) bool {
	n := 0
	for _, slot := range s.Slots {
		n += slot.Files
	}
	return s.CaughtUp && !s.Edited && s.Base > 0 && s.Base == s.Head && n == files
}
