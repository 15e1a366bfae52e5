//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// keeperOf finds the node that sees to the shared key directories: the last one that said so, and not that another one
// is to.
func keeperOf(t *testing.T, c *lab.Cluster) int {
	t.Helper()
	keeper, last := -1, ""
	for i, n := range c.Nodes {
		raw, err := os.ReadFile(n.Daemon.LogPath())
		labtest.Must(t, err)
		since := ""
		for line := range strings.Lines(string(raw)) { // they begin with the time
			switch {
			case strings.Contains(line, "this node manages the shared key directories"):
				since = line
			case strings.Contains(line, "another node takes over the shared key directories"):
				since = ""
			}
		}
		if since > last {
			keeper, last = i, since
		}
	}
	if keeper < 0 {
		t.Fatal("nobody sees to the keys")
	}
	return keeper
}

// shareIs waits until a node says what is wrong with its share.
func shareIs(t *testing.T, n *lab.Node, within time.Duration, reason string) {
	t.Helper()
	start := time.Now()
	labtest.Must(t, lab.Eventually(t.Context(), within, n.Name+" to notice", func(ctx context.Context) error {
		var st adminapi.Status
		asked := time.Now()
		if err := n.Daemon.CtlJSON(ctx, &st, "status"); err != nil {
			return err
		}
		if took := time.Since(asked); took > 10*time.Second {
			t.Errorf("%s: status took %s", n.Name, took)
		}
		if st.Node.Ready || !slices.ContainsFunc(st.Node.Reasons, func(r adminapi.Reason) bool {
			return r.Check == "share" && strings.Contains(r.Message, reason)
		}) {
			return fmt.Errorf("ready: %t, %v", st.Node.Ready, st.Node.Reasons)
		}
		return nil
	}))
	t.Logf("%s has noticed after %s", n.Name, time.Since(start).Round(100*time.Millisecond))
	if res := ctl(t, n.Daemon, "status", "--check"); res.Code != 10 {
		t.Errorf("%s: status --check exits with %d", n.Name, res.Code)
	}
}

// The share hangs on one node, first on one that does not see to the keys, then on the one that does.
func testOneHungShare(t *testing.T, c *lab.Cluster) {
	keeper := keeperOf(t, c)
	t.Run("not the keeper", func(t *testing.T) { testHungOn(t, c, c.Nodes[(keeper+1)%len(c.Nodes)], false) })
	t.Run("the keeper", func(t *testing.T) { testHungOn(t, c, c.Nodes[keeper], true) })
}

// testHungOn: the node, which leads, says so and does not hang itself; another one leads then; minions are served, by
// the others' masters, and these do not notice.
func testHungOn(t *testing.T, c *lab.Cluster, victim *lab.Node, keeper bool) {
	ctx := t.Context()
	must(t, victim.Daemon, "transfer", victim.Name)
	if err := c.Share.HangOn(victim.Host); errors.Is(err, lab.ErrNoFUSE) {
		t.Skip(err)
	} else {
		labtest.Must(t, err)
	}
	defer func() { labtest.Must(t, c.Share.AnswerOn(victim.Host)) }()
	shareIs(t, victim, time.Minute, "does not answer")
	others := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *lab.Node) bool { return n == victim })
	for _, n := range others {
		if err := c.Answering(ctx, n); err != nil {
			res, _ := n.Master.Run(ctx, "salt", "-t", "10", "--out=json", "--static", "*", "test.ping")
			t.Fatalf("%v\n%s\n%s\n%s", err, res.Output(), ctl(t, n.Daemon, "minions").Output(),
				ctl(t, n.Daemon, "status").Output())
		}
		var st adminapi.Status
		labtest.Must(t, n.Daemon.CtlJSON(ctx, &st, "status"))
		if !st.Node.Ready {
			t.Errorf("%s is not ready: %v", n.Name, st.Node.Reasons)
		}
	}
	anotherLeads(t, c, victim)
	// A minion that is connected to the node whose share hangs gets its pillar from another master.
	direct, err := c.Minions[0].Host().NewMinion(lab.Versions[1], "at-"+victim.Name, victim.Addr)
	labtest.Must(t, err)
	labtest.Must(t, direct.Start(ctx))
	defer func() { _ = direct.Kill() }()
	if !keeper { // who sees to the keys cannot write them now: they wait for it
		labtest.Must(t, acceptOn(ctx, others[0], direct.ID))
		labtest.Must(t, lab.Answering(ctx, others[1].Master, append(c.IDs(), direct.ID)...))
	}
	labtest.Must(t, c.Share.AnswerOn(victim.Host))
	labtest.Must(t, c.Whole(ctx, 2*time.Minute))
	labtest.Must(t, acceptOn(ctx, victim, direct.ID))
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Answering(ctx, n.Master, append(c.IDs(), direct.ID)...))
	}
	labtest.Must(t, direct.Kill())
	res, err := victim.Master.Run(ctx, "salt-key", "-y", "-d", direct.ID)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	keyIs(t, c, direct.ID, "", time.Minute)
}

// anotherLeads waits until all nodes say that one of the others leads.
func anotherLeads(t *testing.T, c *lab.Cluster, victim *lab.Node) {
	t.Helper()
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, n.Name+" to see another leader",
			func(ctx context.Context) error {
				var st adminapi.Status
				err := n.Daemon.CtlJSON(ctx, &st, "status")
				if err == nil && (st.Cluster.Leader == "" || st.Cluster.Leader == victim.Name) {
					err = fmt.Errorf("it is %q", st.Cluster.Leader)
				}
				return err
			}))
	}
}

// acceptOn accepts a key with salt-key when the master shows it.
func acceptOn(ctx context.Context, n *lab.Node, id string) error {
	return lab.Eventually(ctx, 90*time.Second, id+" to be accepted on "+n.Name, func(ctx context.Context) error {
		if _, err := n.Master.Run(ctx, "salt-key", "-y", "-a", id); err != nil {
			return err
		}
		res, err := n.Master.Run(ctx, "salt-key", "-l", "accepted")
		if err == nil && !strings.Contains(res.Stdout, id) {
			err = errors.New(res.Output())
		}
		return err
	})
}

// One node has something else mounted: all say so, with its name, and are well when it has the share again.
func testOtherShare(t *testing.T, c *lab.Cluster) {
	odd := c.Nodes[(keeperOf(t, c)+1)%len(c.Nodes)]
	back, err := c.Share.MountCopy(t.Context(), odd.Host)
	if errors.Is(err, lab.ErrNeedsRoot) {
		t.Skip(err)
	}
	labtest.Must(t, err)
	back = sync.OnceValue(back)
	defer func() { labtest.Must(t, back()) }() // what follows needs the share
	for _, n := range c.Nodes {
		reason := odd.Name + " has another file system"
		if n == odd {
			reason = "has another file system" // which of the others it names first is all the same
		}
		shareIs(t, n, 2*time.Minute, reason)
	}
	labtest.Must(t, back())
	labtest.Must(t, c.Whole(t.Context(), 2*time.Minute))
	for _, n := range c.Nodes {
		labtest.Must(t, c.Answering(t.Context(), n))
	}
}
