//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// rootsMode makes cluster_roots_sync of a node another one.
func rootsMode(t *testing.T, n *lab.Node, mode string) {
	t.Helper()
	over := maps.Clone(eventSettings)
	over["cluster_roots_sync"] = mode
	labtest.Must(t, n.Daemon.Configure(over))
	rootsCtl(t, n, 0, "upgrade")
}

// rootsCtl runs saltclusterctl, which must end with a code, and returns what it printed.
func rootsCtl(t *testing.T, n *lab.Node, code int, args ...string) string {
	t.Helper()
	res, err := n.Daemon.Ctl(t.Context(), args...)
	labtest.Must(t, err)
	if res.Code != code {
		t.Fatalf("%v on %s ends with %d, not %d: %s", args, n.Name, res.Code, code, res.Output())
	}
	return res.Output()
}

// rootsNode waits until a node says something of its roots that a check likes.
func rootsNode(t *testing.T, n *lab.Node, what string, check func(adminapi.RootsNode) error) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), rootsWithin, what, func(ctx context.Context) error {
		st, err := rootsOf(ctx, n)
		if err != nil {
			return err
		}
		for _, row := range st.Nodes {
			if row.Node == n.Name {
				return check(row)
			}
		}
		return fmt.Errorf("%s is not among %+v", n.Name, st.Nodes)
	}))
}

// With manual a node takes what others send, and sends what is edited there when somebody says so.
func testRootsManual(t *testing.T, c *lab.Cluster) {
	m1, m3 := c.Nodes[0], c.Nodes[2]
	rootsSettled(t, c)
	rootsMode(t, m3, "manual")
	defer rootsMode(t, m3, "auto")
	writeRoot(t, m3, "rootstest/by hand", "3", 0o644)
	rootsNode(t, m3, "m3 to see its edit", func(n adminapi.RootsNode) error {
		if !n.Edited || n.Mode != "manual" {
			return fmt.Errorf("%+v", n)
		}
		return nil
	})
	writeRoot(t, m1, "rootstest/from m1", "1", 0o644)
	onNodes(t, c.Nodes, "what m1 sends", holds("rootstest/from m1", "1"))
	labtest.Must(t, gone("rootstest/by hand")(m1))
	labtest.Must(t, holds("rootstest/by hand", "3")(m3))
	if text := rootsCtl(t, m1, 0, "roots", "status"); !strings.Contains(text, "edited here; sync_roots sends it") {
		t.Errorf("roots status: %s", text)
	}
	if text := rootsCtl(t, m3, 0, "sync_roots", "--dry-run"); !strings.Contains(text, "by hand") {
		t.Errorf("sync_roots --dry-run: %s", text)
	}
	labtest.Must(t, gone("rootstest/by hand")(m1))
	rootsCtl(t, m3, 0, "sync_roots")
	for _, n := range c.Nodes {
		labtest.Must(t, holds("rootstest/by hand", "3")(n))
	}
	rootsSettled(t, c)
}

// With off a node neither takes nor sends, and is in nobody's way; afterwards both sides' edits are everywhere, but for
// what somebody has discarded.
func testRootsOff(t *testing.T, c *lab.Cluster) {
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	rootsMode(t, m3, "off")
	writeRoot(t, m1, "rootstest/without m3", "1", 0o644)
	writeRoot(t, m3, "rootstest/on m3 only", "3", 0o644)
	writeRoot(t, m1, "rootstest/on both", "1", 0o644)
	writeRoot(t, m3, "rootstest/on both", "3", 0o644)
	if text := rootsCtl(t, m1, 0, "sync_roots"); !strings.Contains(text, "left out: cluster_roots_sync is off") ||
		!strings.Contains(text, "is on all nodes but m3") {
		t.Errorf("sync_roots: %s", text)
	}
	if text := rootsCtl(t, m1, 6, "roots", "diff", "m1", "m3"); !strings.Contains(text,
		"m3 has no replicated roots that could be compared") {
		t.Errorf("roots diff: %s", text)
	}
	labtest.Must(t, holds("rootstest/without m3", "1")(m2))
	labtest.Must(t, gone("rootstest/without m3")(m3))
	if text := rootsCtl(t, m3, 6, "sync_roots"); !strings.Contains(text, "cluster_roots_sync is off") {
		t.Errorf("sync_roots on m3: %s", text)
	}
	rootsMode(t, m3, "auto")
	onNodes(t, c.Nodes, "what m3 had", holds("rootstest/on m3 only", "3"))
	onNodes(t, c.Nodes, "what the others had", holds("rootstest/without m3", "1"))
	onNodes(t, c.Nodes, "what had won", holds("rootstest/on both", "1"))
	rootsSettled(t, c)
	var list adminapi.RootsConflicts
	labtest.Must(t, m3.Daemon.CtlJSON(t.Context(), &list, "roots", "conflicts"))
	if len(list.Conflicts) != 1 || list.Conflicts[0].Node != m3.Name ||
		!strings.HasSuffix(list.Conflicts[0].Path, "on both") {
		t.Fatalf("conflicts: %+v", list)
	}
	lost := list.Conflicts[0]
	if raw, err := os.ReadFile(lost.Kept); err != nil || string(raw) != "3" {
		t.Errorf("kept: %q, %v", raw, err)
	}
	for id, hint := range map[string]string{lost.ID: "it was put aside on m3", "nosuch": "roots conflicts lists them"} {
		if text := rootsCtl(t, m1, 12, "roots", "discard", "--yes", id); !strings.Contains(text, hint) {
			t.Errorf("discard on another node: %s", text)
		}
	}
	rootsCtl(t, m3, 0, "roots", "discard", "--yes", "--path", "on *")
	if _, err := os.Lstat(lost.Kept); !os.IsNotExist(err) {
		t.Errorf("%s was discarded: %v", lost.Kept, err)
	}
	if text := rootsCtl(t, m1, 0, "roots", "conflicts"); !strings.Contains(text, "nothing was put aside") {
		t.Errorf("conflicts: %s", text)
	}
	onNodes(t, c.Nodes, "what had won", holds("rootstest/on both", "1"))
	rootsSettled(t, c)
}

// rootsDirs gives a node's master these directories, and has saltclusterd read them.
func rootsDirs(t *testing.T, n *lab.Node, dirs ...string) {
	t.Helper()
	path := filepath.Join(n.Master.ConfigDir, "master.d/zz-roots.conf")
	if len(dirs) == 0 {
		labtest.Must(t, os.Remove(path))
	} else {
		text := "file_roots:\n  base:\n"
		for _, d := range dirs {
			dir := filepath.Join(n.Dir(), "srv", d)
			labtest.Must(t, os.MkdirAll(dir, 0o755))
			text += "    - " + dir + "\n"
		}
		labtest.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	rootsCtl(t, n, 0, "upgrade")
}

// rootsSays waits until roots status on a node says something.
func rootsSays(t *testing.T, n *lab.Node, what string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), rootsWithin, what, func(context.Context) error {
		if text := rootsCtl(t, n, 0, "roots", "status"); !strings.Contains(text, what) {
			return errors.New(text)
		}
		return nil
	}))
}

// Masters that list the same directories in another order: nothing goes from one directory into another, and who
// differs says so.
func testRootsOrder(t *testing.T, c *lab.Cluster) {
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	more := func(n *lab.Node, file string) string { return filepath.Join(n.Dir(), "srv/more", file) }
	for _, n := range []*lab.Node{m1, m2} {
		rootsDirs(t, n, "salt", "more")
	}
	labtest.Must(t, os.WriteFile(more(m1, "second"), []byte("2"), 0o644))
	in := func(text string) func(*lab.Node) error {
		return func(n *lab.Node) error {
			raw, err := os.ReadFile(more(n, "second"))
			if err == nil && string(raw) != text {
				err = fmt.Errorf("%q", raw)
			}
			return err
		}
	}
	onNodes(t, []*lab.Node{m2}, "the second directory", in("2"))
	rootsSays(t, m3, "file:base:1 (m1: /srv/more, m2: /srv/more) is not in the configuration of this node's master")
	before := treeOf(t, m3.Master.FileRoot())
	rootsDirs(t, m3, "more", "salt")
	rootsNode(t, m3, "m3 to see that it differs", func(n adminapi.RootsNode) error {
		for _, s := range n.Slots {
			if strings.HasPrefix(s.Slot, "file:base:") &&
				!strings.Contains(s.Unavailable, "another order: m1 lists /srv/salt, /srv/more") {
				return fmt.Errorf("%+v", s)
			}
		}
		return nil
	})
	writeRoot(t, m1, "rootstest/ordered", "1", 0o644)
	writeRoot(t, m3, "rootstest/crossed", "3", 0o644)
	if text := rootsCtl(t, m1, 5, "sync_roots", "--timeout", "20s"); !strings.Contains(text, "another order") {
		t.Errorf("sync_roots: %s", text)
	}
	labtest.Must(t, holds("rootstest/ordered", "1")(m2))
	rootsSays(t, m1, "not replicated there")
	after := treeOf(t, m3.Master.FileRoot())
	delete(after, "/rootstest/crossed")
	if !maps.Equal(before, after) || len(treeOf(t, filepath.Join(m3.Dir(), "srv/more"))) != 0 {
		t.Error("m3's directories were written to")
	}
	labtest.Must(t, gone("rootstest/crossed")(m1))
	rootsDirs(t, m3, "salt", "more")
	onNodes(t, c.Nodes, "the second directory", in("2"))
	onNodes(t, c.Nodes, "what was edited on m3", holds("rootstest/crossed", "3"))
	onNodes(t, c.Nodes, "what was edited on m1", holds("rootstest/ordered", "1"))
	rootsSettled(t, c)
	for _, n := range c.Nodes {
		rootsDirs(t, n)
	}
	rootsSettled(t, c)
}
