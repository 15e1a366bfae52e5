//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// New minions call nodes whose salt-masters cannot decide about them: one stands still, one was killed. The third
// decides; they are pending on every node, are accepted, and are served by the node that they call.
func testStrangers(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	paused, killed, left := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	before := relayedSignIns(t, c)
	labtest.Must(t, killed.Master.Kill())
	labtest.Must(t, paused.Master.Pause())
	defer func() {
		_ = paused.Master.Resume()
		if !killed.Master.Running() {
			labtest.Must(t, killed.Master.Start(ctx))
		}
		labtest.Must(t, killed.Master.WaitReady(ctx, 3*time.Minute))
	}()
	var ids []string
	for _, v := range []string{lab.Versions[0], lab.Versions[2]} {
		m, err := c.Minions[0].Host().NewMinion(v, "stranger"+v[2:4], paused.Addr)
		labtest.Must(t, err)
		labtest.Must(t, m.Start(ctx))
		defer func() { _ = m.Kill() }()
		ids = append(ids, m.ID)
	}
	third := byteStranger(t, c.Minions[0].Host(), "stranger-bytes", left)
	ids = append(ids, third.id)
	hears(t, third, killed.Addr, "pending")
	for _, id := range ids {
		keyIs(t, c, id, "minions_pre", 30*time.Second)
	}
	for _, n := range c.Nodes {
		keys, err := n.Master.Keys(ctx)
		labtest.Must(t, err)
		for _, id := range ids {
			if !slices.Contains(keys["minions_pre"], id) {
				t.Errorf("salt-key on %s: %s is not pending: %v", n.Name, id, keys)
			}
		}
	}
	if got := relayedSignIns(t, c); got[paused.Name] == before[paused.Name] || got[killed.Name] == before[killed.Name] ||
		got[left.Name] != before[left.Name] {
		t.Errorf("sign-ins handed to others: %v, before %v", got, before)
	}
	labtest.Must(t, left.Master.AcceptKeys(ctx, 30*time.Second, ids...))
	labtest.Must(t, killed.Master.Start(ctx)) // it takes some seconds
	for _, id := range ids[:2] {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, id+" to be served", func(ctx context.Context) error {
			for _, fun := range []string{"test.ping", "pillar.items"} {
				got, err := left.Master.Pub(ctx, id, fun)
				if err == nil {
					err = lab.AnsweredBy(got, id)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", fun, err)
				}
			}
			return nil
		}))
	}
	hears(t, third, paused.Addr, "accepted")
	labtest.Must(t, third.works(ctx, paused.Addr))
	if third.got.publishPort != 4505 {
		t.Errorf("told to subscribe at port %d", third.got.publishPort)
	}
	res, err := left.Master.Run(ctx, "salt-key", "-y", "-d", "stranger*")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
}

// byteStranger is a minion with a key of its own that knows the cluster's.
func byteStranger(t *testing.T, host *lab.Host, id string, n *lab.Node) *byteMinion {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	pin, err := os.ReadFile(filepath.Join(n.Master.PKIDir(), "master.pub"))
	labtest.Must(t, err)
	return &byteMinion{
		host: host, id: id, key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1,
		pin: saltcrypt.CleanKey(string(pin)),
	}
}

// hears has a minion sign in, again when it is not answered, as stock minions do.
func hears(t *testing.T, m *byteMinion, addr, want string) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), 30*time.Second, m.id+" to hear "+want, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		heard, err := m.signIn(ctx, addr)
		if err == nil && heard != want {
			err = fmt.Errorf("it hears %q", heard)
		}
		return err
	}))
}

// relayedSignIns is how many sign-ins each node had decided by another one.
func relayedSignIns(t *testing.T, c *lab.Cluster) map[string]float64 {
	out := map[string]float64{}
	for _, n := range c.Nodes {
		for _, outcome := range []string{"relayed_pending", "relayed_accepted"} {
			out[n.Name] += metricSum(t, n, "saltcluster_signin_requests_total", `outcome="`+outcome+`"`)
		}
	}
	return out
}
