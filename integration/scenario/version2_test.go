//go:build integration

package scenario

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// TestVersion2 has a minion whose payload version is 2 beside a usual one, where nodes and masters allow that. It signs
// in, runs jobs, is given its pillar and its files by each node; what it returns is kept, and its key can be deleted.
// Payload versions 0 and 1 are refused.
func TestVersion2(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("an old minion has to be installed: make test-version2")
	}
	ctx := t.Context()
	masters, daemons := maps.Clone(clusterMasters), maps.Clone(metricsForAll)
	masters["minimum_auth_version"], daemons["request_minimum_version"] = 2, 2
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: []string{lab.OldMinion, lab.Versions[0]}, MasterSettings: masters,
		DaemonSettings: daemons,
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	old := c.Minions[0]
	speaksVersion(t, c, map[string]int{old.ID: 2, c.Minions[1].ID: 3})
	for _, n := range c.Nodes {
		jid := async(t, n, "test.arg", "one", "two=2")
		inCache(t, c, n, jid, time.Minute)
		got, err := n.Master.Pub(ctx, "*", "state.apply", "demo")
		labtest.Must(t, err)
		labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
		states, _ := got[old.ID].(map[string]any)
		if len(states) == 0 {
			t.Errorf("%s: state.apply of %s answers %v", n.Name, old.ID, got[old.ID])
		}
		for name, state := range states {
			if s, ok := state.(map[string]any); !ok || s["result"] != true {
				t.Errorf("%s: %s of %s: %v", n.Name, name, old.ID, state)
			}
		}
	}
	for _, call := range [][]string{
		{"cp.hash_file", "salt://demo/init.sls"}, {"cp.get_file_str", "salt://demo/init.sls"}, {"pillar.items"},
		{"mine.send", "lab_mine", "mine_function=test.echo", "old"}, {"mine.get", "*", "lab_mine"},
		{"event.send", "lab/old"}, {"publish.publish", "*", "test.ping"},
	} {
		for _, n := range c.Nodes { // whichever it asks
			got, err := old.Call(ctx, "--master="+n.Addr, call...)
			if err != nil || got == nil || got == false || got == "" {
				t.Errorf("%s by %s: %v, %v", strings.Join(call, " "), n.Name, got, err)
			}
		}
	}
	refuseOlder(t, c)
	deleted(t, c.Nodes[2], old.ID)
	keyIs(t, c, old.ID, "minions_pre", time.Minute) // it has noticed, and signs in anew
	got, err := c.Nodes[0].Master.Pub(ctx, "*", "test.ping")
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.Minions[1].ID))
}

// speaksVersion waits until all nodes say which payload versions the minions speak.
func speaksVersion(t *testing.T, c *lab.Cluster, want map[string]int) {
	t.Helper()
	for _, n := range c.Nodes {
		eventually(t, time.Minute, n.Name+" to know the payload versions", func() bool {
			var p adminapi.Protocols
			labtest.Must(t, n.Daemon.CtlJSON(t.Context(), &p, "minions", "--protocol"))
			speak := map[string]int{}
			for _, m := range p.Minions {
				speak[m.ID] = m.Version
			}
			return maps.Equal(speak, want)
		})
	}
}

// refuseOlder signs in with payload versions that no node takes: they are refused for that reason, and the log has it.
func refuseOlder(t *testing.T, c *lab.Cluster) {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	m := &byteMinion{host: c.LB.Host(), id: "older", key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1}
	for _, n := range c.Nodes {
		for _, version := range []int{0, 1} {
			before := metricSum(t, n, "saltcluster_minion_refused_requests_total", `reason="version_too_old"`)
			auth := saltwire.AuthRequest{ID: m.id, Nonce: m.nonce(), Pub: key.PublicText(), EncAlgo: m.enc, SigAlgo: m.sig}
			answer, err := m.exchange(t.Context(), n.Addr, saltwire.AppendEnvelope(nil, saltwire.Envelope{
				Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, auth), Version: version, HasVersion: version > 0,
			}))
			if err != nil || !bytes.Equal(answer, saltwire.BadLoad()) {
				t.Errorf("payload version %d: %s answers %.40q, %v", version, n.Name, answer, err)
			}
			if now := metricSum(t, n, "saltcluster_minion_refused_requests_total", `reason="version_too_old"`); now != before+1 {
				t.Errorf("payload version %d: %s has refused %v for it", version, n.Name, now-before)
			}
		}
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the reason", func(ctx context.Context) error {
			if !n.Daemon.Logged("version_too_old") {
				return errors.New("the log does not have it")
			}
			return nil
		}))
		if state := n.Master.KeyState(m.id); state != "" {
			t.Errorf("%s has a key of %s: %s", n.Name, m.id, state)
		}
	}
}
