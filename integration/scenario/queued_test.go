//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// What a state waits for, and that it waits.
func releaseFile(m *lab.Minion) string { return filepath.Join(m.StateDir(), "release") }
func waitingFile(m *lab.Minion) string { return filepath.Join(m.StateDir(), "waiting") }

// waitForRelease is a line for a shell that runs until releaseFile is there; dir is a grain that names StateDir.
func waitForRelease(dir string) string {
	return fmt.Sprintf("mkdir -p %[1]s; touch %[1]s/waiting; while [ ! -e %[1]s/release ]; do sleep 0.1; done", dir)
}

// queuedBy lists the ids of the jobs that a minion has queued, as the names of its files have them.
func queuedBy(t *testing.T, m *lab.Minion) (jids []string) {
	t.Helper()
	labtest.Must(t, filepath.WalkDir(filepath.Dir(m.StateDir()), func(path string, _ os.DirEntry, err error) error {
		if name, is := strings.CutPrefix(filepath.Base(path), "queued_"); is && strings.HasSuffix(name, ".p") {
			_, jid, _ := strings.Cut(strings.TrimSuffix(name, ".p"), "_")
			jids = append(jids, jid)
		}
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}))
	return jids
}

// haveQueued waits until each minion has so many jobs in its queues.
func haveQueued(t *testing.T, minions []*lab.Minion, n int) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, fmt.Sprintf("%d queued jobs", n),
		func(context.Context) error {
			for _, m := range minions {
				if jids := queuedBy(t, m); len(jids) != n {
					return fmt.Errorf("%s has %v", m.ID, jids)
				}
			}
			return nil
		}))
}

// released lets what waits go on, or makes what follows wait.
func released(t *testing.T, minions []*lab.Minion, are bool) {
	t.Helper()
	for _, m := range minions {
		labtest.Must(t, os.MkdirAll(m.StateDir(), 0o755))
		if are {
			labtest.Must(t, os.WriteFile(releaseFile(m), nil, 0o644))
			continue
		}
		labtest.Must(t, errors.Join(os.RemoveAll(releaseFile(m)), os.RemoveAll(waitingFile(m))))
	}
}

// allWait waits until each minion runs what waits to be released.
func allWait(t *testing.T, minions []*lab.Minion) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "all minions to run the first job",
		func(context.Context) error {
			for _, m := range minions {
				if _, err := os.Stat(waitingFile(m)); err != nil {
					return err
				}
			}
			return nil
		}))
}

// Jobs that minions put into their queues, because a state runs or process_count_max do, return when they have run: to
// the command line, and to all job caches. Minions make their own of the ids of such jobs (saltwire.CutJID).
func testQueued(t *testing.T, c *lab.Cluster) {
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	writeRoot(t, m1, "queued/first.sls", "first:\n  cmd.run:\n    - name: "+waitForRelease("{{ grains.lab_dir }}")+"\n",
		0o644)
	writeRoot(t, m1, "queued/then.sls", "then:\n  test.succeed_without_changes\n", 0o644)
	rootsSettled(t, c)
	defer released(t, c.Minions, true)
	t.Run("states", func(t *testing.T) {
		released(t, c.Minions, false)
		first := async(t, m1, "state.apply", "queued.first")
		allWait(t, c.Minions)
		later := async(t, m2, "state.apply", "queued.then", "queue=True")
		if !strings.Contains(later, "_") {
			t.Errorf("the id %s has no suffix that a minion would cut", later)
		}
		haveQueued(t, c.Minions, 1)
		var shown lab.Result
		var g errgroup.Group
		g.Go(func() (err error) {
			shown, err = m3.Master.Run(t.Context(), "salt", "--out=txt", "-t", "90", "*", "state.apply", "queued.then",
				"queue=True")
			return err
		})
		haveQueued(t, c.Minions, 2)
		own := map[*lab.Minion]string{} // what salt-call queues has an id that the minion makes
		for _, m := range c.Minions {
			before := queuedBy(t, m)
			_, err := m.Run(t.Context(), "salt-call", "state.apply", "queued.then", "queue=True")
			labtest.Must(t, err)
			for _, jid := range queuedBy(t, m) {
				if !slices.Contains(before, jid) {
					own[m] = jid
				}
			}
			if own[m] == "" {
				t.Errorf("salt-call of %s queued nothing", m.ID)
			}
		}
		released(t, c.Minions, true)
		labtest.Must(t, g.Wait())
		for _, m := range c.Minions {
			if !strings.Contains(shown.Stdout, m.ID+": {") || strings.Contains(shown.Stdout, "did not return") {
				t.Errorf("salt shows of %s:\n%s", m.ID, shown.Output())
			}
		}
		for _, n := range c.Nodes {
			inCache(t, c, n, first, time.Minute)
			inCache(t, c, n, later, time.Minute)
			for m, jid := range own {
				inCacheOf(t, c, n, jid, time.Minute, m.ID)
			}
		}
		haveQueued(t, c.Minions, 0)
	})
	t.Run("process_count_max", func(t *testing.T) {
		// With 3007.15 no job ever returns then, not from a bare master either: places are never given back.
		fit := slices.DeleteFunc(slices.Clone(c.Minions),
			func(m *lab.Minion) bool { return strings.HasPrefix(m.Version, "3007.") })
		setMinions(t, c, fit, "process_count_max: 1\n")
		defer setMinions(t, c, fit, "")
		released(t, fit, false)
		first := asyncTo(t, m1, fit, "cmd.run", waitForRelease("{{ grains.lab_dir }}"), "template=jinja", inShell)
		allWait(t, fit)
		later := asyncTo(t, m2, fit, "test.arg", "later")
		haveQueued(t, fit, 1)
		released(t, fit, true)
		for _, n := range c.Nodes {
			for _, jid := range []string{first, later} {
				inCacheOf(t, c, n, jid, time.Minute, idsOf(fit)...)
			}
		}
	})
}

func idsOf(minions []*lab.Minion) (ids []string) {
	for _, m := range minions {
		ids = append(ids, m.ID)
	}
	return ids
}

// setMinions starts minions again with those lines in their configuration.
func setMinions(t *testing.T, c *lab.Cluster, minions []*lab.Minion, lines string) {
	t.Helper()
	for _, m := range minions {
		dir := filepath.Join(m.ConfigDir, "minion.d")
		labtest.Must(t, os.MkdirAll(dir, 0o755))
		labtest.Must(t, os.WriteFile(filepath.Join(dir, "test.conf"), []byte(lines), 0o644))
		labtest.Must(t, m.Stop(t.Context()))
		labtest.Must(t, m.Start(t.Context()))
	}
	labtest.Must(t, c.Answering(t.Context(), c.Nodes[0]))
}
