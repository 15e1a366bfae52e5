//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// testLinkCut: two nodes that reach the third one only work as if nothing was cut, some seconds later, and both say so.
func testLinkCut(t *testing.T, c *lab.Cluster) {
	labtest.NeedNetwork(t, c.Lab)
	ctx, leader := t.Context(), leaderOf(t, c)
	var ends []*lab.Node
	for _, n := range c.Nodes {
		if n.Name != leader {
			ends = append(ends, n)
		}
	}
	a, b := ends[0], ends[1]
	beyond, err := c.Minions[0].Host().NewMinion(lab.Versions[1], "beyond", b.Host.Addr)
	labtest.Must(t, err)
	labtest.Must(t, beyond.Start(ctx))
	defer func() { _ = beyond.Kill() }()
	labtest.Must(t, b.Master.AcceptKeys(ctx, 2*time.Minute, beyond.ID))
	keyIs(t, c, beyond.ID, "minions", time.Minute)
	answers := func(ctx context.Context, n *lab.Node) error {
		res, err := n.Master.Run(ctx, "salt", "-L", beyond.ID, "test.ping")
		return errors.Join(err, res.Err())
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, beyond.ID+" to answer",
		func(ctx context.Context) error { return answers(ctx, b) }))
	throughOthers := func(n, other *lab.Node, want bool) {
		t.Helper()
		text := "reaches " + other.Name + " through other nodes only"
		labtest.Must(t, lab.Eventually(ctx, time.Minute, n.Name+" to tell how it reaches "+other.Name,
			func(ctx context.Context) error {
				res, err := n.Daemon.Ctl(ctx, "status")
				if err == nil && strings.Contains(res.Stdout, text) != want {
					err = fmt.Errorf("says %q: %t, want %t:\n%s", text, !want, want, res.Stdout)
				}
				return err
			}))
	}

	labtest.Must(t, c.Lab.Partition(ctx, []*lab.Host{a.Host}, []*lab.Host{b.Host}))
	first := asyncOn(t, a, []string{"-L", beyond.ID}, "test.ping")
	inCacheOf(t, c, a, first, time.Minute, beyond.ID)
	throughOthers(a, b, true)
	throughOthers(b, a, true)
	labtest.Must(t, answers(ctx, a)) // in time for a command line
	inCacheOf(t, c, b, first, time.Minute, beyond.ID)
	labtest.Must(t, c.Lab.Heal(ctx))
	throughOthers(a, b, false)
	throughOthers(b, a, false)
	labtest.Must(t, answers(ctx, a))
	labtest.Must(t, beyond.Stop(ctx))
	must(t, b.Daemon, "keys", "delete", "--yes", beyond.ID)
	keyIs(t, c, beyond.ID, "", 30*time.Second)
}
