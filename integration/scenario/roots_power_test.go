//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// The power fails on a node just when a large change has taken its place there, and nobody has waited for the disk.
// What is lost by that comes again, and is no edit of that node.
func TestRootsPowerFailure(t *testing.T) {
	const files, rounds = 600, 2
	l := labtest.New(t, lab.Options{})
	labtest.NeedNetwork(t, l)
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, DaemonSettings: lab.Settings{"cluster_roots_max_delete": 100}, Disk: 512, Seams: lab.SeamSync,
	})
	if errors.Is(err, lab.ErrNoDisk) {
		t.Skip(err)
	}
	labtest.Must(t, err)
	labtest.Must(t, c.Form(t.Context()))
	m1, m2 := c.Nodes[0], c.Nodes[1]
	rootsSettled(t, c)
	labtest.Must(t, m2.Daemon.SetSeams(lab.Seams{Sync: time.Second / 2}))
	for round := range rounds {
		for _, n := range c.Nodes { // what was there before is as old as any installation
			labtest.Must(t, n.SyncDisk())
		}
		next := filepath.Join(t.TempDir(), "next")
		for i := range files {
			path := filepath.Join(next, fmt.Sprint("dir", i%20), fmt.Sprint("file", i))
			labtest.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			labtest.Must(t, os.WriteFile(path, []byte(strings.Repeat(fmt.Sprintf("round %d of file %d\n", round, i), 2500)),
				0o644))
		}
		labtest.Must(t, replaceTree(next, inRoots(m1, "power")))
		synced := make(chan error, 1)
		go func() {
			_, err := m1.Daemon.Ctl(t.Context(), "sync_roots")
			synced <- err
		}()
		last := filepath.Join(inRoots(m2, "power"), fmt.Sprint("dir", (files-1)%20), fmt.Sprint("file", files-1))
		want := fmt.Sprintf("round %d ", round)
		labtest.Must(t, lab.Eventually(t.Context(), rootsWithin, "the change to be on m2", func(context.Context) error {
			b, err := os.ReadFile(last)
			if err == nil && !strings.HasPrefix(string(b), want) {
				err = fmt.Errorf("%.20q", b)
			}
			return err
		}))
		labtest.Must(t, m2.PowerOff(t.Context()))
		<-synced // that m2 is away is what it says
		labtest.Must(t, m2.PowerOn(t.Context()))
		labtest.Must(t, errors.Join(m2.Master.Start(t.Context()), m2.Daemon.Start(t.Context())))
		labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
		rootsSettled(t, c)
	}
	if !m2.Daemon.Logged("did not reach the disk") {
		t.Errorf("nothing was lost in %d power failures", rounds)
	}
	var h adminapi.RootsHistory
	labtest.Must(t, m1.Daemon.CtlJSON(t.Context(), &h, "roots", "history"))
	for _, r := range h.Revisions {
		if r.Author == m2.Name {
			t.Errorf("what a power failure has left was proposed: %+v", r)
		}
	}
	st, err := rootsOf(t.Context(), m1)
	labtest.Must(t, err)
	for _, n := range st.Nodes {
		if n.Conflicts > 0 {
			t.Errorf("%s has put aside something: %+v", n.Node, n)
		}
	}
	res, err := m2.Master.Run(t.Context(), "salt-run", "fileserver.file_list")
	labtest.Must(t, err)
	if n := strings.Count(res.Stdout, "power/dir"); n != files {
		t.Errorf("the salt-master lists %d of %d files", n, files)
	}
}

// replaceTree writes each file of a tree over that of another, as rsync does.
func replaceTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		temp := filepath.Join(filepath.Dir(target), ".#"+filepath.Base(target))
		return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(temp, content, 0o644),
			os.Rename(temp, target))
	})
}
