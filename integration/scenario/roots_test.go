//go:build integration

package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// rootsWithin is the timeout of a change; it takes a second where nobody else works.
const rootsWithin = 30 * time.Second

// inRoots is a path below file_roots of a node.
func inRoots(n *lab.Node, path string) string { return filepath.Join(n.Master.FileRoot(), path) }

func writeRoot(t *testing.T, n *lab.Node, path, text string, mode os.FileMode) {
	t.Helper()
	path = inRoots(n, path)
	labtest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	labtest.Must(t, os.WriteFile(path, []byte(text), mode))
	labtest.Must(t, os.Chmod(path, mode))
}

// onNodes waits until a check holds on all nodes, and says how long that took.
func onNodes(t *testing.T, nodes []*lab.Node, what string, check func(n *lab.Node) error) time.Duration {
	t.Helper()
	began := time.Now()
	for _, n := range nodes {
		labtest.Must(t, lab.Eventually(t.Context(), rootsWithin, what+" on "+n.Name,
			func(context.Context) error { return check(n) }))
	}
	return time.Since(began)
}

func holds(path, text string) func(*lab.Node) error {
	return func(n *lab.Node) error {
		got, err := os.ReadFile(inRoots(n, path))
		if err == nil && string(got) != text {
			err = fmt.Errorf("%s holds %.40q", path, got)
		}
		return err
	}
}

func gone(path string) func(*lab.Node) error {
	return func(n *lab.Node) error {
		if _, err := os.Lstat(inRoots(n, path)); err == nil {
			return fmt.Errorf("%s is there", path)
		}
		return nil
	}
}

// rootsOf is what a node says of all nodes' roots.
func rootsOf(ctx context.Context, n *lab.Node) (st adminapi.RootsStatus, err error) {
	err = n.Daemon.CtlJSON(ctx, &st, "roots", "status")
	return st, err
}

// rootsSettled waits until all nodes have the newest revision and no edits of their own, and their trees are equal:
// what was edited a moment ago nobody has noticed yet.
func rootsSettled(t *testing.T, c *lab.Cluster) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 2*rootsWithin, "the roots to be current", func(ctx context.Context) error {
		st, err := rootsOf(ctx, c.Nodes[0])
		if err != nil {
			return err
		}
		if len(st.Nodes) != len(c.Nodes) || st.Head == nil {
			return fmt.Errorf("%d nodes, head %v", len(st.Nodes), st.Head)
		}
		for _, n := range st.Nodes {
			if n.Error != "" || n.Off != "" || !n.Current || n.Edited || n.Revision != st.Head.Number {
				return fmt.Errorf("%+v of %d", n, st.Head.Number)
			}
		}
		for _, n := range c.Nodes[1:] {
			if d := differ(t, c.Nodes[0].Master.FileRoot(), n.Master.FileRoot()); d != "" {
				return fmt.Errorf("%s and %s: %s", c.Nodes[0].Name, n.Name, d)
			}
		}
		return nil
	}))
}

// differ says how two trees differ; names that begin with our prefix are not part of them.
func differ(t *testing.T, a, b string) string {
	t.Helper()
	was, is := treeOf(t, a), treeOf(t, b)
	for path, v := range was {
		if is[path] != v {
			return fmt.Sprintf("%q is %.60q and %.60q", path, v, is[path])
		}
	}
	for path := range is {
		if _, ok := was[path]; !ok {
			return fmt.Sprintf("%q is in %s only", path, b)
		}
	}
	return ""
}

// treeOf is what a tree holds, by path. What goes away meanwhile may be missing.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && path != dir:
			return nil
		case err != nil || path == dir:
			return err
		case strings.HasPrefix(d.Name(), ".saltcluster-") && d.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(d.Name(), ".saltcluster-"):
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var raw []byte
			raw, err = os.ReadFile(path)
			text = string(raw)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		mode := info.Mode().String()
		if info.Mode()&fs.ModeSymlink != 0 {
			mode = "symlink"
		}
		out[strings.TrimPrefix(path, dir)] = mode + " " + text
		return err
	})
	labtest.Must(t, err)
	return out
}

// recursed applies a state that copies a directory of salt:// to a minion, through a node, and returns what arrived.
func recursed(t *testing.T, c *lab.Cluster, n *lab.Node) map[string]string {
	t.Helper()
	m := c.Minions[0]
	got, err := n.Master.Pub(t.Context(), m.ID, "state.apply", "rootstest")
	labtest.Must(t, err)
	if fmt.Sprint(got[m.ID]) == "" || strings.Contains(fmt.Sprint(got[m.ID]), "result:false") {
		t.Fatalf("state.apply through %s: %v", n.Name, got)
	}
	return treeOf(t, filepath.Join(m.StateDir(), "rootstest"))
}

// What is edited on one master is what a state through another uses, whatever it is: files, modes, links, deletions.
func testRoots(t *testing.T, c *lab.Cluster) {
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	writeRoot(t, m1, "rootstest/init.sls", `{{ grains.lab_dir }}/rootstest:
  file.recurse:
    - source: salt://rootstest/files
    - makedirs: True
    - clean: True
`, 0o644)
	writeRoot(t, m1, "rootstest/files/one", "1", 0o644)
	onNodes(t, c.Nodes, "a new state", holds("rootstest/files/one", "1"))
	for _, n := range c.Nodes {
		if got := recursed(t, c, n); len(got) != 1 {
			t.Errorf("through %s: %q", n.Name, got)
		}
	}
	// Each master has its list of files in its cache now, for 20 seconds.
	writeRoot(t, m2, "rootstest/files/two", "2", 0o640)
	labtest.Must(t, os.Remove(inRoots(m2, "rootstest/files/one")))
	took := onNodes(t, c.Nodes, "the deletion", gone("rootstest/files/one"))
	t.Logf("edited on %s, on all after %s", m2.Name, took.Round(time.Millisecond))
	onNodes(t, c.Nodes, "the new file", holds("rootstest/files/two", "2"))
	for _, n := range []*lab.Node{m3, m1, m2} {
		if got := recursed(t, c, n); len(got) != 1 || !strings.HasSuffix(got["/two"], "2") {
			t.Errorf("through %s, right after the change: %q", n.Name, got)
		}
	}
	writeRoot(t, m3, "rootstest/run.sh", "#!/bin/sh\n", 0o755)
	writeRoot(t, m3, "rootstest/wéb, \u2713 and space", "x", 0o600)
	labtest.Must(t, os.Symlink("/etc/passwd", inRoots(m3, "rootstest/outside")))
	labtest.Must(t, os.Mkdir(inRoots(m3, "rootstest/empty"), 0o700))
	onNodes(t, c.Nodes, "an empty directory",
		func(n *lab.Node) error { _, err := os.Stat(inRoots(n, "rootstest/empty")); return err })
	rootsSettled(t, c)
	for _, n := range c.Nodes {
		if to, err := os.Readlink(inRoots(n, "rootstest/outside")); err != nil || to != "/etc/passwd" {
			t.Errorf("%s: the link leads to %q, %v", n.Name, to, err)
		}
	}
	var d adminapi.RootsDiff
	labtest.Must(t, m1.Daemon.CtlJSON(t.Context(), &d, "roots", "diff", m2.Name, m3.Name))
	if len(d.Changes) != 0 {
		t.Errorf("roots diff: %+v", d.Changes)
	}
}

// Two masters edit at once: both edits are there, and of two edits of one file one wins everywhere and the other is
// kept.
func testRootsEditedAtOnce(t *testing.T, c *lab.Cluster) {
	m1, m2 := c.Nodes[0], c.Nodes[1]
	rootsSettled(t, c)
	writeRoot(t, m1, "rootstest/only1", "one", 0o644)
	writeRoot(t, m1, "rootstest/both", "one", 0o644)
	writeRoot(t, m2, "rootstest/both", "two", 0o644)
	writeRoot(t, m2, "rootstest/only2", "two", 0o644)
	onNodes(t, c.Nodes, "the first edit", holds("rootstest/only1", "one"))
	onNodes(t, c.Nodes, "the other edit", holds("rootstest/only2", "two"))
	rootsSettled(t, c)
	won, err := os.ReadFile(inRoots(m1, "rootstest/both"))
	labtest.Must(t, err)
	var list adminapi.RootsConflicts
	labtest.Must(t, c.Nodes[2].Daemon.CtlJSON(t.Context(), &list, "roots", "conflicts"))
	if len(list.Conflicts) != 1 || !strings.HasSuffix(list.Conflicts[0].Path, "both") {
		t.Fatalf("conflicts: %+v", list)
	}
	lost := list.Conflicts[0]
	n := c.Nodes[strings.Index("123", lost.Node[1:])]
	res, err := n.Daemon.Ctl(t.Context(), "roots", "restore", lost.ID)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	other := map[string]string{"one": "two", "two": "one"}[string(won)]
	onNodes(t, c.Nodes, "what had lost, put back", holds("rootstest/both", other))
	rootsSettled(t, c)
}

// A deletion of very much waits for an operator, who may refuse it or say yes.
func testRootsHeld(t *testing.T, c *lab.Cluster) {
	m1, m2 := c.Nodes[0], c.Nodes[1]
	for i := range 40 {
		writeRoot(t, m1, fmt.Sprintf("rootstest/many/%d", i), "x", 0o644)
	}
	all := func(n *lab.Node) error {
		names, err := os.ReadDir(inRoots(n, "rootstest/many"))
		if err == nil && len(names) != 40 {
			err = fmt.Errorf("%d of 40", len(names))
		}
		return err
	}
	onNodes(t, c.Nodes, "many files", all)
	rootsSettled(t, c)
	for _, verdict := range [][]string{{"drop"}, {"confirm", "--yes"}} {
		// All at once: of a removal that takes a while the first part may be in force already.
		away := filepath.Join(filepath.Dir(inRoots(m1, "")), "many-"+verdict[0])
		labtest.Must(t, os.Rename(inRoots(m1, "rootstest/many"), away))
		res, err := m1.Daemon.Ctl(t.Context(), "sync_roots", "--timeout", "20s")
		labtest.Must(t, err)
		if res.Code != 6 {
			t.Fatalf("sync_roots says %d: %s", res.Code, res.Output())
		}
		var last adminapi.RootsRevision
		onNodes(t, []*lab.Node{m2}, "the held revision", func(n *lab.Node) error {
			var h adminapi.RootsHistory
			if err := n.Daemon.CtlJSON(t.Context(), &h, "roots", "history"); err != nil {
				return err
			}
			last = h.Revisions[len(h.Revisions)-1]
			if last.State != "held" || last.Removed != 40 {
				return fmt.Errorf("the last is %+v", last)
			}
			return nil
		})
		labtest.Must(t, all(m2))
		res, err = m2.Daemon.Ctl(t.Context(), slices.Concat([]string{"roots"}, verdict, []string{fmt.Sprint(last.Number)})...)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		if verdict[0] == "drop" {
			onNodes(t, c.Nodes, "what was deleted", all)
			rootsSettled(t, c)
		}
	}
	onNodes(t, c.Nodes, "the deletion", gone("rootstest/many"))
	rootsSettled(t, c)
}

// An operator takes a change back, on all nodes.
func testRootsRollback(t *testing.T, c *lab.Cluster) {
	m1, m3 := c.Nodes[0], c.Nodes[2]
	writeRoot(t, m1, "rootstest/good", "good", 0o644)
	onNodes(t, c.Nodes, "the good one", holds("rootstest/good", "good"))
	rootsSettled(t, c)
	st, err := rootsOf(t.Context(), m3)
	labtest.Must(t, err)
	writeRoot(t, m1, "rootstest/good", "bad", 0o600)
	writeRoot(t, m1, "rootstest/worse", "worse", 0o644)
	onNodes(t, c.Nodes, "the bad one", holds("rootstest/good", "bad"))
	rootsSettled(t, c)
	res, err := m3.Daemon.Ctl(t.Context(), "roots", "rollback", "--yes", fmt.Sprint(st.Head.Number))
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	for _, n := range c.Nodes {
		labtest.Must(t, holds("rootstest/good", "good")(n))
		labtest.Must(t, gone("rootstest/worse")(n))
	}
	rootsSettled(t, c)
}

// A node that is down is no success; it comes back with what others edited meanwhile, and with what was edited on its
// disk. One that is killed in the middle of a sync goes on where it was.
func testRootsNodeDown(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	labtest.Must(t, m3.Daemon.Kill())
	writeRoot(t, m1, "rootstest/meanwhile", "others", 0o644)
	writeRoot(t, m3, "rootstest/mine", "its own", 0o644)
	labtest.Must(t, os.Remove(inRoots(m1, "rootstest/only1")))
	res, err := m1.Daemon.Ctl(ctx, "sync_roots", "--timeout", "20s")
	labtest.Must(t, err)
	if res.Code != 5 || !strings.Contains(res.Stdout, "not on all nodes: m3") {
		t.Errorf("sync_roots without m3 says %d: %s", res.Code, res.Output())
	}
	onNodes(t, []*lab.Node{m2}, "the edit", holds("rootstest/meanwhile", "others"))

	big := make([]byte, 48<<20)
	_, err = rand.Read(big)
	labtest.Must(t, err)
	labtest.Must(t, os.WriteFile(inRoots(m1, "rootstest/big"), big, 0o644))
	labtest.Must(t, lab.Eventually(ctx, rootsWithin, "m2 to be in the middle of it", func(ctx context.Context) error {
		st, err := rootsOf(ctx, m2)
		if err != nil {
			return err
		}
		if st.Head == nil || st.Nodes[1].Phase != "fetch" && st.Head.Bytes < int64(len(big)) {
			return fmt.Errorf("%+v", st.Nodes[1])
		}
		return nil
	}))
	labtest.Must(t, m2.Daemon.Kill())
	labtest.Must(t, m3.Daemon.Start(ctx))
	labtest.Must(t, m2.Daemon.Start(ctx))
	for _, n := range []*lab.Node{m2, m3} {
		labtest.Must(t, n.Daemon.Serving(ctx, 2*time.Minute))
		if err := holds("rootstest/meanwhile", "others")(n); err != nil {
			t.Errorf("%s serves minions with old roots: %v", n.Name, err)
		}
	}
	onNodes(t, c.Nodes, "what was edited on m3 while it was down", holds("rootstest/mine", "its own"))
	onNodes(t, c.Nodes, "the deletion", gone("rootstest/only1"))
	onNodes(t, c.Nodes, "the big file", func(n *lab.Node) error {
		got, err := os.ReadFile(inRoots(n, "rootstest/big"))
		if err == nil && !bytes.Equal(got, big) {
			err = fmt.Errorf("%d other bytes", len(got))
		}
		return err
	})
	labtest.Must(t, os.RemoveAll(inRoots(m1, "rootstest")))
	res, err = m1.Daemon.Ctl(ctx, "sync_roots", "--force", "--yes", "--timeout", "1m")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	for _, n := range c.Nodes {
		labtest.Must(t, gone("rootstest")(n)) // sync_roots has waited for it
	}
	rootsSettled(t, c)
}
