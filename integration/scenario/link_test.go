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

// testLinkCut: two nodes that reach only the third one work as if nothing was cut, some seconds later, and both say so:
// jobs and returns, and where one of them leads the cluster, decisions about keys.
func testLinkCut(t *testing.T, c *lab.Cluster) {
	labtest.NeedNetwork(t, c.Lab)
	ctx := t.Context()
	var leader *lab.Node
	var others []*lab.Node
	name := leaderOf(t, c)
	for _, n := range c.Nodes {
		if n.Name == name {
			leader = n
		} else {
			others = append(others, n)
		}
	}
	far := others[1]
	const doomed = "deleted-behind-the-cut"
	moveKey(t, leader, doomed, publicKey(t), "", "minions")
	keyIs(t, c, doomed, "minions", time.Minute)
	beyond, err := c.Minions[0].Host().NewMinion(lab.Versions[1], "beyond", far.Host.Addr)
	labtest.Must(t, err)
	labtest.Must(t, beyond.Start(ctx))
	defer func() { _ = beyond.Kill() }()
	labtest.Must(t, far.Master.AcceptKeys(ctx, 2*time.Minute, beyond.ID))
	keyIs(t, c, beyond.ID, "minions", time.Minute)
	answers := func(ctx context.Context, n *lab.Node) error {
		res, err := n.Master.Run(ctx, "salt", "-L", beyond.ID, "test.ping")
		return errors.Join(err, res.Err())
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, beyond.ID+" to answer",
		func(ctx context.Context) error { return answers(ctx, far) }))

	for _, near := range []*lab.Node{others[0], leader} {
		labtest.Must(t, c.Lab.Partition(ctx, []*lab.Host{near.Host}, []*lab.Host{far.Host}))
		first := asyncOn(t, near, []string{"-L", beyond.ID}, "test.ping")
		inCacheOf(t, c, near, first, time.Minute, beyond.ID)
		inCacheOf(t, c, far, first, time.Minute, beyond.ID)
		throughOthers(t, near, far, true)
		throughOthers(t, far, near, true)
		labtest.Must(t, answers(ctx, near)) // in time for a command line
		if near == leader {
			must(t, near.Daemon, "keys", "delete", "--yes", doomed)
			keyIs(t, c, doomed, "", time.Minute)
		}
		labtest.Must(t, c.Lab.Heal(ctx))
		throughOthers(t, near, far, false)
		throughOthers(t, far, near, false)
		labtest.Must(t, answers(ctx, near))
	}
	labtest.Must(t, beyond.Kill())
	must(t, far.Daemon, "keys", "delete", "--yes", beyond.ID)
	keyIs(t, c, beyond.ID, "", 30*time.Second)
}

// throughOthers waits until n says, or does not say any more, that it reaches another node through others only.
func throughOthers(t *testing.T, n, other *lab.Node, want bool) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, n.Name+" to tell how it reaches "+other.Name,
		func(ctx context.Context) error {
			res, err := n.Daemon.Ctl(ctx, "status")
			if says := strings.Contains(res.Stdout, "reaches "+other.Name+" through other nodes only"); err == nil && says != want {
				err = fmt.Errorf("it says so: %t, want %t:\n%s", says, want, res.Stdout)
			}
			return err
		}))
}
