//go:build integration

package scenario

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// rejectByWheel rejects an accepted key as salt-api and the like do.
const rejectByWheel = `
import sys, salt.config, salt.wheel
opts = salt.config.master_config(sys.argv[1])
salt.wheel.WheelClient(opts).call_func("key.reject", match=sys.argv[2], include_accepted=True)
`

// A key that is accepted or deleted with stock salt-key, or rejected by a wheel module, on one node is so on all.
func testKeys(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m1, m2, m3 := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	m, err := c.Minions[0].Host().NewMinion(lab.Versions[0], "newcomer", c.LB.Host().Addr)
	labtest.Must(t, err)
	labtest.Must(t, m.Start(ctx))
	defer func() { _ = m.Kill() }()
	keyIs(t, c, "newcomer", "minions_pre", time.Minute)

	change := func(n *lab.Node, option, state string) {
		t.Helper()
		res, err := n.Master.Run(ctx, "salt-key", "-y", option, "newcomer")
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		keyIs(t, c, "newcomer", state, 10*time.Second)
	}
	change(m2, "-a", "minions")
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Answering(ctx, n.Master, append(c.IDs(), "newcomer")...))
	}
	labtest.Must(t, m.Kill()) // it would ask for its key again and again; stopping takes long on a busy machine
	res, err := m1.Master.Run(ctx, "python", "-c", rejectByWheel, m1.Master.ConfigDir+"/master", "newcomer")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	keyIs(t, c, "newcomer", "minions_rejected", 10*time.Second)
	change(m3, "-d", "")
	labtest.Must(t, lab.Answering(ctx, m1.Master, c.IDs()...))
}

// Accepted keys that are deleted in numbers by way of one salt-master are put back there and stay everywhere, until an
// operator decides.
func testHeldKeys(t *testing.T, c *lab.Cluster) {
	ctx, m1, m2 := t.Context(), c.Nodes[0], c.Nodes[1]
	pub := publicKey(t)
	var ids []string
	for i := range 8 {
		ids = append(ids, fmt.Sprintf("bulk-%d", i))
		moveKey(t, m1, ids[i], pub, "", "minions")
	}
	are := func(ids []string, state string) {
		t.Helper()
		for _, id := range ids {
			keyIs(t, c, id, state, time.Minute)
		}
	}
	are(ids, "minions")
	deleteAll := func() (held []string) { // up to three of them are gone before it is seen how many they are
		t.Helper()
		res, err := m2.Master.Run(ctx, "salt-key", "-y", "-d", "bulk-*")
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "keys to be held", func(ctx context.Context) error {
			var of adminapi.HeldKeys
			if err := m2.Daemon.CtlJSON(ctx, &of, "keys", "held"); err != nil {
				return err
			}
			held = of.IDs
			if len(held) < len(ids)-3 {
				return fmt.Errorf("%v are", held)
			}
			return nil
		}))
		are(held, "minions")
		are(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return slices.Contains(held, id) }), "")
		return held
	}

	held := deleteAll()
	for _, n := range c.Nodes {
		says(t, n.Daemon, []string{fmt.Sprintf("%d accepted keys were deleted, rejected or replaced on this host", len(held))},
			"status")
	}
	must(t, m2.Daemon, "keys", "held", "--keep")
	says(t, m2.Daemon, []string{"no keys are held"}, "keys", "held")
	for _, id := range ids {
		if !slices.Contains(held, id) {
			moveKey(t, m1, id, pub, "", "minions")
		}
	}
	are(ids, "minions")

	held = deleteAll()
	if res := ctl(t, m2.Daemon, "keys", "held", "--delete"); res.Code != 2 {
		t.Errorf("without a terminal and --yes: exit code %d", res.Code)
	}
	are(held, "minions")
	must(t, m2.Daemon, "keys", "held", "--delete", "--yes")
	are(ids, "")
	says(t, m2.Daemon, []string{"no keys are held"}, "keys", "held")
	labtest.Must(t, lab.Answering(ctx, m1.Master, c.IDs()...))
}

// keyIs waits until the key is in that state, and in no other, on all nodes; state "" means it is nowhere.
func keyIs(t *testing.T, c *lab.Cluster, id, state string, within time.Duration) {
	t.Helper()
	start := time.Now()
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), within, fmt.Sprintf("key %s to be %q on %s", id, state, n.Name),
			func(context.Context) error {
				if got := n.Master.KeyState(id); got != state {
					return fmt.Errorf("it is %q", got)
				}
				return nil
			}))
	}
	t.Logf("key %s is %q on all nodes after %s", id, state, time.Since(start).Round(time.Millisecond))
}
