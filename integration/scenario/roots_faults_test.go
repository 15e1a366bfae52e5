//go:build integration

package scenario

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// Roots while disks are full, lines break, clocks differ and either side of a fetch is killed.
func TestRootsFaults(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; run: make test-roots")
	}
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)
	settings := maps.Clone(metricsForAll)
	settings["cluster_roots_max_delete"] = 100 // a rename of everything is a deletion, too
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{Masters: lab.Versions, DaemonSettings: settings,
		Seams: lab.SeamClock})
	labtest.Must(t, err)
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	slot, err := m3.MountSmall(t.Context(), "srv/salt", 600)
	if errors.Is(err, lab.ErrNoDisk) {
		t.Skip(err)
	}
	labtest.Must(t, err)
	state, err := m2.MountSmall(t.Context(), "var/lib/saltclusterd/roots", 64)
	labtest.Must(t, err)
	labtest.Must(t, c.Form(t.Context()))
	for _, s := range []struct {
		name string
		test func(*testing.T)
	}{
		{"clocks a minute apart", func(t *testing.T) { testRootsClocks(t, c) }},
		{"the disk of a node is full", func(t *testing.T) { testRootsDiskFull(t, c, m3, slot, "the disk is too full") }},
		{"what a node knows cannot be written", func(t *testing.T) { testRootsDiskFull(t, c, m2, state, "no space left") }},
		{"who fetches is killed", func(t *testing.T) { testRootsKilled(t, c, m2) }},
		{"who sends is killed", func(t *testing.T) { testRootsKilled(t, c, m1) }},
		{"the line breaks", func(t *testing.T) { testRootsLine(t, c) }},
		{"20,000 files and edits meanwhile", func(t *testing.T) { testRootsMany(t, c) }},
		{"another disk in the place of a root", func(t *testing.T) { testRootsReplaced(t, c, m3, slot) }},
	} {
		if !t.Run(s.name, s.test) {
			t.Log(l.Tails(40))
		}
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	}
}

// Edits on both sides of two minutes: their order is that of the log, and nothing of it is in the clocks.
func testRootsClocks(t *testing.T, c *lab.Cluster) {
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	labtest.Must(t, m2.Daemon.SetSeams(lab.Seams{Clock: time.Minute}))
	labtest.Must(t, m3.Daemon.SetSeams(lab.Seams{Clock: -time.Minute}))
	defer func() {
		labtest.Must(t, m2.Daemon.SetSeams(lab.Seams{}))
		labtest.Must(t, m3.Daemon.SetSeams(lab.Seams{}))
	}()
	rootsSettled(t, c)
	for i := range 5 {
		for _, n := range c.Nodes { // one after the other: each is newer than the one before, whatever the clock says
			text := fmt.Sprint(n.Name, i)
			writeRoot(t, n, "rootstest/turns", text, 0o644)
			onNodes(t, c.Nodes, "the edit", holds("rootstest/turns", text))
		}
	}
	for _, n := range c.Nodes { // at once
		writeRoot(t, n, "rootstest/"+n.Name, n.Name, 0o644)
		writeRoot(t, n, "rootstest/all", n.Name, 0o644)
	}
	for _, n := range c.Nodes {
		onNodes(t, c.Nodes, "the edit of "+n.Name, holds("rootstest/"+n.Name, n.Name))
	}
	rootsSettled(t, c)
	won, err := os.ReadFile(inRoots(m1, "rootstest/all"))
	labtest.Must(t, err)
	var list adminapi.RootsConflicts
	labtest.Must(t, m1.Daemon.CtlJSON(t.Context(), &list, "roots", "conflicts"))
	lost := map[string]bool{}
	for _, x := range list.Conflicts {
		raw, err := os.ReadFile(x.Kept)
		labtest.Must(t, err)
		lost[string(raw)] = true
	}
	for _, n := range c.Nodes {
		if n.Name != string(won) && !lost[n.Name] {
			t.Errorf("the edit of %s is gone; %s has won, %v are aside", n.Name, won, lost)
		}
	}
	labtest.Must(t, os.Remove(inRoots(m2, "rootstest/turns")))
	onNodes(t, c.Nodes, "the deletion", gone("rootstest/turns"))
	rootsSettled(t, c)
}

// noiseFiles makes a directory of random files and renames it into a node's roots.
func noiseFiles(t *testing.T, n *lab.Node, dir string, files, size int) {
	t.Helper()
	temp := filepath.Join(n.Master.FileRoot(), ".saltcluster-new")
	labtest.Must(t, os.MkdirAll(temp, 0o755))
	raw := make([]byte, size)
	for i := range files {
		var seed [32]byte
		binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
		_, _ = rand.NewChaCha8(seed).Read(raw)
		labtest.Must(t, os.WriteFile(filepath.Join(temp, fmt.Sprint("noise", i)), raw, 0o644))
	}
	labtest.Must(t, os.Rename(temp, inRoots(n, dir)))
}

// A node that has no room says so, keeps the others from nothing, and goes on when it has.
func testRootsDiskFull(t *testing.T, c *lab.Cluster, full *lab.Node, disk *lab.Small, says string) {
	m1 := c.Nodes[0]
	rootsSettled(t, c)
	labtest.Must(t, disk.Fill(0))
	defer func() { labtest.Must(t, disk.Free()) }() // what comes next is not to fail for that
	// a database has some room inside: from what came before, but for less at once
	for i, files := range []int{400, 400, 8000} {
		noiseFiles(t, m1, fmt.Sprint("full", i), files, 4<<10)
	}
	text := rootsCtl(t, m1, 5, "sync_roots", "--timeout", "10s")
	if !strings.Contains(text, "not on all nodes: "+full.Name) || !strings.Contains(text, says) {
		t.Errorf("sync_roots: %s", text)
	}
	for _, n := range c.Nodes {
		if _, err := os.Stat(inRoots(n, "full2/noise0")); (err == nil) != (n != full) {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	check.Contains(t, rootsCtl(t, full, 0, "roots", "status"), says, "roots status")
	labtest.Must(t, disk.Free())
	rootsSettled(t, c) // by itself
	labtest.Must(t, holdsSame(m1, full, "full2/noise7"))
	for i := range 3 {
		labtest.Must(t, os.RemoveAll(inRoots(m1, fmt.Sprint("full", i))))
	}
	rootsCtl(t, m1, 0, "sync_roots", "--force", "--yes")
	rootsSettled(t, c)
}

// A root on a file system that is away, or is another one, deletes nothing and brings nothing old; it goes on when the
// file system is back, or when an operator says that the other one is meant.
func testRootsReplaced(t *testing.T, c *lab.Cluster, moved *lab.Node, disk *lab.Small) {
	m1, m2 := c.Nodes[0], c.Nodes[1]
	others := []*lab.Node{m1, m2}
	writeRoot(t, m1, "rootstest/replaced", "old", 0o644)
	onNodes(t, c.Nodes, "what was", holds("rootstest/replaced", "old"))
	rootsSettled(t, c)
	leftAlone := func(why string) {
		t.Helper()
		rootsNode(t, moved, "the root to be left alone", func(n adminapi.RootsNode) error {
			for _, p := range n.Problems {
				if strings.Contains(p, why) {
					return nil
				}
			}
			return fmt.Errorf("%+v", n)
		})
	}
	defer func() { labtest.Must(t, disk.Uncover()) }()

	labtest.Must(t, disk.Cover()) // as if it were not mounted, over what somebody once had there
	writeRoot(t, moved, "rootstest/replaced", "ancient", 0o644)
	leftAlone("another file system")
	writeRoot(t, m1, "rootstest/replaced", "new", 0o644)
	onNodes(t, others, "the edit", holds("rootstest/replaced", "new"))
	if text := rootsCtl(t, moved, 5, "sync_roots", "--force", "--yes"); !strings.Contains(text,
		"not on all nodes: "+moved.Name) {
		t.Errorf("sync_roots: %s", text)
	}
	labtest.Must(t, errors.Join(holds("rootstest/replaced", "new")(m1), holds("rootstest/replaced", "new")(m2)))
	labtest.Must(t, disk.Uncover())
	onNodes(t, c.Nodes, "the edit", holds("rootstest/replaced", "new"))
	rootsSettled(t, c)

	labtest.Must(t, disk.Cover()) // a new disk
	leftAlone("an empty one")
	rootsCtl(t, moved, 6, "roots", "refill", "--yes", filepath.Dir(disk.Dir))
	rootsCtl(t, m1, 6, "roots", "refill", "--yes", disk.Dir)
	rootsCtl(t, moved, 0, "roots", "refill", "--yes", disk.Dir)
	rootsSettled(t, c)
	writeRoot(t, moved, "rootstest/replaced", "newer", 0o644)
	onNodes(t, c.Nodes, "an edit on the new disk", holds("rootstest/replaced", "newer"))

	labtest.Must(t, disk.Uncover()) // and the old one again
	leftAlone("another file system")
	labtest.Must(t, errors.Join(holds("rootstest/replaced", "newer")(m1), holds("rootstest/replaced", "newer")(m2)))
	rootsCtl(t, moved, 0, "roots", "refill", "--yes", disk.Dir)
	onNodes(t, c.Nodes, "what the cluster has", holds("rootstest/replaced", "newer"))
	rootsSettled(t, c)
}

func holdsSame(a, b *lab.Node, path string) error {
	x, err := os.ReadFile(inRoots(a, path))
	if err != nil {
		return err
	}
	y, err := os.ReadFile(inRoots(b, path))
	if err == nil && !bytes.Equal(x, y) {
		err = fmt.Errorf("%s differs on %s and %s", path, a.Name, b.Name)
	}
	return err
}

const (
	fetchedBytes = "saltcluster_roots_fetched_bytes_total"
	noiseSize    = 2 << 20
	noiseCount   = 48
)

// inTheMiddle waits until a node has fetched a quarter of something large, and returns how much it has.
func inTheMiddle(t *testing.T, n *lab.Node) (done int64) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, n.Name+" to be in the middle of a fetch",
		func(ctx context.Context) error {
			st, err := rootsOf(ctx, n)
			if err != nil {
				return err
			}
			for _, row := range st.Nodes {
				if row.Node != n.Name {
					continue
				}
				if done = row.BytesDone; row.Phase != "fetch" || done < noiseSize*noiseCount/4 {
					return fmt.Errorf("%s, %d bytes", row.Phase, done)
				}
			}
			return nil
		}))
	return done
}

// Who is killed in the middle of a fetch goes on with what is missing, and nobody fetches what he has.
func testRootsKilled(t *testing.T, c *lab.Cluster, victim *lab.Node) {
	ctx := t.Context()
	m1, m2 := c.Nodes[0], c.Nodes[1]
	rootsSettled(t, c)
	labtest.Must(t, c.Lab.Delay(ctx, m1.Host, lab.Latency{Each: 4 * time.Millisecond}))
	defer func() { labtest.Must(t, c.Lab.Heal(ctx)) }()
	before := metricSum(t, m2, fetchedBytes)
	noiseFiles(t, m1, "killed", noiseCount, noiseSize)
	done := inTheMiddle(t, m2)
	labtest.Must(t, victim.Daemon.Kill())
	most := float64(noiseCount*noiseSize)*5/4 + before
	if victim == m2 {
		most = float64(noiseCount*noiseSize-done) + 1<<20
	}
	labtest.Must(t, victim.Daemon.Start(ctx))
	labtest.Must(t, victim.Daemon.Serving(ctx, 2*time.Minute))
	rootsSettled(t, c)
	for _, n := range c.Nodes[1:] {
		labtest.Must(t, holdsSame(m1, n, "killed/noise0"))
	}
	got := metricSum(t, m2, fetchedBytes)
	if got > most {
		t.Errorf("%s had %d MiB when %s was killed, and has fetched %.0f MiB (%.0f before)", m2.Name, done>>20, victim.Name,
			got/(1<<20), before/(1<<20))
	}
	t.Logf("%d MiB before, %.0f MiB in all", done>>20, got/(1<<20))
	labtest.Must(t, os.RemoveAll(inRoots(m1, "killed")))
	rootsCtl(t, m1, 0, "sync_roots", "--force", "--yes")
}

// A line that is dead for a while in the middle of a fetch.
func testRootsLine(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	labtest.Must(t, c.Lab.Delay(ctx, m2.Host, lab.Latency{Each: 4 * time.Millisecond}))
	defer func() { labtest.Must(t, c.Lab.Heal(ctx)) }()
	before := metricSum(t, m2, fetchedBytes)
	noiseFiles(t, m1, "cut", noiseCount, noiseSize)
	inTheMiddle(t, m2)
	labtest.Must(t, c.Lab.Isolate(ctx, m2.Host))
	writeRoot(t, m2, "rootstest/behind the line", "2", 0o644)
	writeRoot(t, m1, "rootstest/before the line", "1", 0o644)
	onNodes(t, []*lab.Node{m3}, "an edit meanwhile", holds("rootstest/before the line", "1"))
	labtest.Must(t, c.Lab.Heal(ctx))
	onNodes(t, c.Nodes, "what was edited behind it", holds("rootstest/behind the line", "2"))
	rootsSettled(t, c)
	if got := metricSum(t, m2, fetchedBytes) - before; got > noiseCount*noiseSize*5/4 {
		t.Errorf("%.0f MiB were fetched", got/(1<<20))
	}
	labtest.Must(t, os.RemoveAll(inRoots(m1, "cut")))
	rootsCtl(t, m1, 0, "sync_roots", "--force", "--yes")
}

// Very many files, whose names are bytes, while others are edited everywhere and a node is killed.
func testRootsMany(t *testing.T, c *lab.Cluster) {
	const files = 20_000
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	rootsSettled(t, c)
	temp := filepath.Join(m1.Master.FileRoot(), ".saltcluster-new")
	for i := range files {
		dir := filepath.Join(temp, fmt.Sprintf("d%d/e%d", i%20, i%200))
		if i < 200 {
			labtest.Must(t, os.MkdirAll(dir, 0o755))
		}
		path := filepath.Join(dir, fmt.Sprintf("f%d", i))
		if i%50 == 0 {
			path += "\xff\xfe \n'"
		}
		if i%100 == 1 {
			labtest.Must(t, os.Symlink("../no\xffwhere", path))
			continue
		}
		labtest.Must(t, os.WriteFile(path, fmt.Append(nil, "file ", i), []os.FileMode{0o644, 0o600, 0o755}[i%3]))
	}
	labtest.Must(t, os.MkdirAll(filepath.Join(temp, "empty/inner"), 0o700))
	labtest.Must(t, os.Rename(temp, inRoots(m1, "many")))
	for i := range 40 {
		n := c.Nodes[i%3]
		writeRoot(t, n, fmt.Sprintf("rootstest/meanwhile%d", i), n.Name, 0o644)
		if i == 20 {
			labtest.Must(t, m3.Daemon.Kill())
		}
	}
	labtest.Must(t, m3.Daemon.Start(ctx))
	labtest.Must(t, m3.Daemon.Serving(ctx, 2*time.Minute))
	for i := range 40 {
		onNodes(t, c.Nodes, "an edit meanwhile", holds(fmt.Sprintf("rootstest/meanwhile%d", i), c.Nodes[i%3].Name))
	}
	rootsSettled(t, c)
	check.Equal(t, len(treeOf(t, filepath.Join(m2.Master.FileRoot(), "many"))), files+220+2, "paths")
	began := time.Now()
	labtest.Must(t, os.Rename(inRoots(m2, "many"), inRoots(m2, "renamed")))
	onNodes(t, c.Nodes, "a rename of all", func(n *lab.Node) error {
		_, err := os.Stat(inRoots(n, "renamed/d1"))
		return errors.Join(err, gone("many")(n))
	})
	t.Logf("a directory of %d files is renamed: %s", files, time.Since(began).Round(time.Millisecond))
	rootsSettled(t, c)
}
