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
)

// saysReauthDelay is what a stock minion's process says before it ends, because no master has answered its sign-ins,
// and is started again after a random part of random_reauth_delay.
const saysReauthDelay = "waiting random_reauth_delay"

// TestReauthDelay: minions of three versions with a random_reauth_delay. None of them waits for it when the cluster's
// key changes, and those that find no node come back. "make test-failback".
func TestReauthDelay(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("make test-failback")
	}
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: []string{lab.Versions[2], lab.Versions[0]}, Minions: lab.Versions,
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15}, DaemonSettings: metricsForAll,
		MinionSettings: lab.Settings{"random_reauth_delay": 20},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	for _, step := range []struct {
		name string
		test func(*testing.T, *lab.Cluster)
	}{
		{"the key changes", testReauthKeyChanges},
		{"no node is there", testReauthNoNode},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.test(t, c) }) {
			t.Fatal(l.Tails(60))
		}
	}
}

// waited counts how often each minion has waited.
func waited(t *testing.T, c *lab.Cluster) map[string]int {
	t.Helper()
	out := map[string]int{}
	for _, m := range c.Minions {
		raw, err := os.ReadFile(m.LogPath())
		labtest.Must(t, err)
		info, err := os.ReadFile(m.InfoPath())
		labtest.Must(t, err)
		out[m.ID] = strings.Count(string(raw)+string(info), saysReauthDelay)
	}
	return out
}

// testReauthKeyChanges: what is published at once after the change runs on each minion, once.
func testReauthKeyChanges(t *testing.T, c *lab.Cluster) {
	before, signed := waited(t, c), acceptedSignIns(t, c)
	dir := t.TempDir()
	labtest.Must(t, os.Chmod(dir, 0o777))
	const rounds = 3
	for round := range rounds {
		must(t, c.Nodes[round%len(c.Nodes)].Daemon, "rotate", "aes", "--yes")
		for i, n := range c.Nodes {
			ran := filepath.Join(dir, fmt.Sprint(round, "-", i, "-"))
			jid := async(t, n, "cmd.run", "echo ran >> "+ran+"{{grains.id}}", "template=jinja")
			inCache(t, c, n, jid, time.Minute)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	labtest.Must(t, err)
	if want := rounds * len(c.Nodes) * len(c.Minions); len(files) != want {
		t.Errorf("jobs ran %d times, not %d", len(files), want)
	}
	for _, path := range files {
		if raw, err := os.ReadFile(path); err != nil || strings.Count(string(raw), "ran") != 1 {
			t.Errorf("%s: %q, %v", filepath.Base(path), raw, err)
		}
	}
	if n := acceptedSignIns(t, c) - signed; int(n) < rounds*len(c.Minions) {
		t.Errorf("%v sign-ins after %d changes of the key", n, rounds)
	}
	if now := waited(t, c); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Errorf("minions have waited: %v, before %v", now, before)
	}
}

// testReauthNoNode: minions that are started while no node is there are served when one is. Whether their process ends
// meanwhile, and waits, is Salt's.
func testReauthNoNode(t *testing.T, c *lab.Cluster) {
	ctx, before := t.Context(), waited(t, c)
	for _, n := range c.Nodes {
		labtest.Must(t, errors.Join(n.Daemon.Kill(), n.Master.Kill()))
	}
	from := map[string]int64{}
	for _, m := range c.Minions {
		info, err := os.Stat(m.LogPath())
		labtest.Must(t, err)
		from[m.ID] = info.Size()
		labtest.Must(t, m.Kill())
		labtest.Must(t, m.Start(ctx))
	}
	labtest.Must(t, lab.Eventually(ctx, 4*time.Minute, "minions to find no node", func(context.Context) error {
		for _, m := range c.Minions {
			if !strings.Contains(since(t, m, from[m.ID]), "unable to successfully connect") {
				return fmt.Errorf("%s has not said so", m.ID)
			}
		}
		return nil
	}))
	for _, n := range c.Nodes {
		labtest.Must(t, errors.Join(n.Daemon.Start(ctx), n.Master.Start(ctx)))
	}
	for _, n := range c.Nodes {
		labtest.Must(t, errors.Join(n.Master.WaitReady(ctx, 3*time.Minute), n.Daemon.Serving(ctx, 2*time.Minute)))
	}
	labtest.Must(t, c.Whole(ctx, 4*time.Minute))
	t.Logf("minions have waited: %v, before %v", waited(t, c), before)
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(ctx, n))
	}
}
