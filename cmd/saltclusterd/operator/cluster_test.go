package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/ring"
)

// network routes calls to members. A member without a handler is down.
type network map[node.ID]http.Handler

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	h := n[node.ID(r.URL.Host)]
	if h == nil {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func (n network) client() peerrpc.Client { return peerrpc.Client{HTTP: &http.Client{Transport: n}} }

func newMux() *peerrpc.Mux {
	return peerrpc.NewMux(func(context.Context) (node.ID, bool) { return "any", true })
}

// fakeLog is a log of the members m1, the leader, m2, m3 and so on.
type fakeLog struct {
	view   state.View
	status consensus.Status
}

func (l fakeLog) View() state.View         { return l.view }
func (l fakeLog) Status() consensus.Status { return l.status }

func newFakeLog(t *testing.T, members int) fakeLog {
	t.Helper()
	s := state.New()
	id := func(i int) node.ID { return node.ID(fmt.Sprintf("m%d", i)) }
	addr := func(i int) string { return fmt.Sprintf("10.0.0.%d:4520", i) }
	fingerprint := func(i int) string { return strings.Repeat(string(rune('a'+i)), 64) }
	cmds := []state.Command{state.Init{
		Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
		Founder:     state.Member{ID: id(1), Addr: addr(1), Fingerprint: fingerprint(0), Weight: 100},
		EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
		SessionSeed: state.SecretText(strings.Repeat("s", 32)), GossipKey: state.SecretText(strings.Repeat("g", 32)),
	}}
	l := fakeLog{status: consensus.Status{Leader: "m1", Commit: 10, HasQuorum: true, Voters: []node.ID{"m1"}}}
	for i := 2; i <= members; i++ {
		cmds = append(cmds, state.MemberAdd{ID: id(i), Addr: addr(i), Fingerprint: fingerprint(i - 1), Weight: 100})
		l.status.Voters = append(l.status.Voters, id(i))
	}
	for _, r := range s.ApplyCommands(cmds...) {
		require.NoError(t, r.Err())
	}
	l.view = s.View()
	return l
}

type fakeGossip map[node.ID]gossip.Member

func (g fakeGossip) Member(id node.ID) (gossip.Member, bool) {
	m, ok := g[id]
	return m, ok
}

// newTestCluster returns m1 of a cluster in which all members are alive and ready, and m2 answers with stats.
func newTestCluster(t *testing.T, members int, stats Stats) (*Cluster, fakeGossip) {
	t.Helper()
	g, net := fakeGossip{}, network{}
	for i := 2; i <= members; i++ {
		id := node.ID(fmt.Sprintf("m%d", i))
		g[id] = gossip.Member{ID: id, State: gossip.Alive, Meta: node.Meta{Ready: true, Build: "1"}}
	}
	mux := newMux()
	NewCluster(ClusterConfig{Stats: func() Stats { return stats }}).Handle(mux)
	net["m2"] = mux
	return NewCluster(ClusterConfig{
		Self: "m1", ClusterID: "lab", UUID: "u", Fingerprint: "ab:cd", Log: newFakeLog(t, members), Gossip: g,
		Client: net.client(), Meta: func() node.Meta { return node.Meta{Ready: true, Build: "1"} },
		Stats:       func() Stats { return Stats{PeerStats: consensus.PeerStats{Commit: 12}} },
		Sync:        func() []adminapi.SyncPart { return nil },
		ClockFresh:  func(id node.ID) bool { return id == "m2" },
		Problems:    func(map[node.ID]Stats) []adminapi.Problem { return nil },
		Usable:      func() []ring.Node { return []ring.Node{{ID: "m1", Weight: 100}, {ID: "m2", Weight: 100}} },
		Publisher:   func(jid string) (node.ID, bool) { return "m2", jid == "20261121040506000001" },
		DrainWanted: func() bool { return false },
		FillNode:    func(n *adminapi.Node) { n.Upstream.Address = "127.0.0.1:4506" },
		RootDirs:    func() []string { return []string{"/srv/salt"} },
	}), g
}

func describe(problems []adminapi.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, fmt.Sprintf("%s %s: %s", p.Level, p.Node, p.Message))
	}
	return out
}

func TestNode_Status(t *testing.T) {
	sick := []adminapi.Reason{
		{Check: "master", Level: adminapi.LevelFail, Message: "no salt-master"},
		{Check: ClockCheck, Level: adminapi.LevelWarn, Message: "its clock is off"},
	}
	for _, c := range []struct {
		name   string
		stats  Stats // of m2; m3 does not answer the call
		change func(fakeGossip)
		want   []string
	}{
		{"all is well", Stats{}, nil, nil},
		{"its own faults are warnings", Stats{Reasons: sick}, nil, []string{"warn m2: no salt-master"}},
		{
			"it is down", Stats{},
			func(g fakeGossip) { m := g["m2"]; m.State = gossip.Absent; g["m2"] = m }, []string{"fail m2: does not answer"},
		},
		{
			"it is down, and with it the majority", Stats{},
			func(g fakeGossip) {
				for _, id := range []node.ID{"m2", "m3"} {
					m := g[id]
					m.State = gossip.Absent
					g[id] = m
				}
			}, nil,
		},
		{"it is unknown", Stats{}, func(g fakeGossip) { delete(g, "m2") }, []string{"fail m2: does not answer"}},
		{
			"it is drained", Stats{Reasons: sick},
			func(g fakeGossip) { m := g["m2"]; m.Meta.Draining = true; g["m2"] = m },
			[]string{"warn m2: is drained, or being drained: it takes no minions"},
		},
		{
			"it is not ready and does not say why", Stats{},
			func(g fakeGossip) { m := g["m3"]; m.Meta.Ready = false; g["m3"] = m }, []string{"warn m3: is not ready"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster, g := newTestCluster(t, 3, c.stats)
			if c.change != nil {
				c.change(g)
			}
			if g["m2"].State == gossip.Absent && g["m3"].State == gossip.Absent {
				l := newFakeLog(t, 3)
				l.status.HasQuorum = false
				cluster.cfg.Log = l
			}
			st, err := newTestNode(cluster, Absence{}).Status(t.Context())
			if err != nil || st.Cluster == nil || len(st.Members) != 3 {
				t.Fatalf("status is %+v, %v", st, err)
			}
			if got := describe(st.Problems); !slices.Equal(got, c.want) {
				t.Errorf("problems are %q, want %q", got, c.want)
			}
			if st.Node.Upstream.Address == "" || st.Cluster.Quorum.Voters != 3 || st.Cluster.Quorum.Need != 2 {
				t.Errorf("status is %+v, %+v", st.Node, st.Cluster)
			}
		})
	}
}

func TestCluster_Members(t *testing.T) {
	failed := Stats{
		PeerStats: consensus.PeerStats{Commit: 8, Term: 4}, Unanswered: 2,
		Reasons: []adminapi.Reason{{Check: "master", Level: adminapi.LevelFail}},
	}
	cluster, g := newTestCluster(t, 3, failed)
	m := g["m3"]
	m.State = gossip.Left
	g["m3"] = m
	rows := cluster.Members(t.Context())
	if r := rows[0]; !r.Self || !r.Leader || !*r.Ready || *r.Lag != 0 || r.Role != adminapi.RoleVoter {
		t.Errorf("row of this node: %+v", r)
	}
	r := rows[1]
	if *r.Ready || !slices.Equal(r.Reasons, []string{"master"}) || *r.Lag != 4 || r.Term != 4 || r.Unanswered != 2 {
		t.Errorf("row of the node with a fault: %+v", r)
	}
	if r := rows[2]; r.State != adminapi.StateLeft || r.Ready != nil || r.Lag != nil {
		t.Errorf("row of the node that left: %+v", r)
	}
}

func TestNode_RingInfo(t *testing.T) {
	cluster, _ := newTestCluster(t, 2, Stats{})
	n := newTestNode(cluster, Absence{})
	for _, c := range []struct {
		q    adminapi.RingQuery
		by   string
		node string // empty: either
	}{
		{adminapi.RingQuery{Minion: "web1"}, string(adminapi.OwnerByRing), ""},
		{adminapi.RingQuery{JID: "20261121040506000001"}, string(adminapi.OwnerByPublisher), "m2"},
		{adminapi.RingQuery{JID: "20261121040506000002"}, string(adminapi.OwnerByRing), ""},
	} {
		info, err := n.RingInfo(t.Context(), c.q)
		if err != nil || len(info.Nodes) != 2 || info.Owner == nil {
			t.Fatalf("%+v: %+v, %v", c.q, info, err)
		}
		o := info.Owner
		if string(o.By) != c.by || c.node != "" && o.Node != c.node || len(o.Next) != 1 || o.Next[0] == o.Node {
			t.Errorf("%+v: owner is %+v", c.q, o)
		}
	}
}

func TestNode_Checkup(t *testing.T) {
	cluster, _ := newTestCluster(t, 3, Stats{Now: time.Now().Add(time.Hour)})
	got, err := newTestNode(cluster, Absence{}).Checkup(t.Context())
	if err != nil || len(got.Peers) != 2 {
		t.Fatalf("checkup is %+v, %v", got, err)
	}
	if p := got.Peers[0]; p.Error != "" || p.Skew == nil || *p.Skew < 3000 {
		t.Errorf("the peer whose clock is an hour ahead: %+v", p)
	}
	if p := got.Peers[1]; !strings.Contains(p.Error, "connection refused") {
		t.Errorf("the peer that is down: %+v", p)
	}
}

// fakeChecks count how often they were run.
type fakeChecks struct{ looks int }

func (c *fakeChecks) Look(context.Context)              { c.looks++ }
func (c *fakeChecks) Report(health.Scope) health.Report { return health.Report{OK: true} }

func newTestNode(c *Cluster, a Absence) *Node {
	return NewNode(NodeConfig{
		Self: "m1", Version: "1", Master: func() *localmaster.Config { return nil }, Checks: &fakeChecks{},
		Absence: func() Absence { return a }, JoinProblem: func() error { return nil }, Of: func() *Cluster { return c },
	})
}

func TestNode_WithoutMembership(t *testing.T) {
	for _, c := range []struct {
		name        string
		a           Absence
		text        string
		maintenance bool
	}{
		{"never", Absence{}, "this node belongs to no cluster yet", true},
		{"starting", Absence{Starting: true}, "this node is a member of a cluster, and is starting", false},
		{"removed", Absence{Removed: "it was removed", Rejoin: "join again"}, "it was removed", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newTestNode(nil, c.a)
			_, err := n.Members(t.Context())
			if adminapi.CodeOf(err) != adminapi.CodeNotMember || !strings.Contains(err.Error(), c.text) {
				t.Errorf("members: %v", err)
			}
			st, err := n.Status(t.Context())
			if err != nil || st.Cluster != nil || st.Removed != c.a.Removed || st.Starting != c.a.Starting {
				t.Errorf("status is %+v, %v", st, err)
			}
			r := c.a.Check()
			if r.Level != health.Fail || r.Reason != c.text || r.Maintenance != c.maintenance || r.Hint == "" {
				t.Errorf("check says %+v", r)
			}
		})
	}
}

// A status waits for the checks when the membership is another one than at the status before.
func TestNode_StatusAwaitsChecks(t *testing.T) {
	cluster, _ := newTestCluster(t, 2, Stats{})
	checks, of := &fakeChecks{}, (*Cluster)(nil)
	n := newTestNode(nil, Absence{})
	n.cfg.Checks, n.cfg.Of = checks, func() *Cluster { return of }
	n.AwaitChecks()
	for i, step := range []struct {
		of    *Cluster
		looks int
	}{{nil, 1}, {nil, 1}, {cluster, 2}, {cluster, 2}, {nil, 3}} {
		of = step.of
		if _, err := n.Status(t.Context()); err != nil || checks.looks != step.looks {
			t.Errorf("step %d: the checks ran %d times, want %d; %v", i, checks.looks, step.looks, err)
		}
	}
}

// What differs in one round only is moving; what stays is a difference. A member that does not answer is missing.
func TestVerifying_Verify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items := func(text string) ledger.Ledger { return ledger.Ledger{Items: map[string]string{"web1": text}} }
		rounds, net := 0, network{}
		other := NewLedgers(LedgersConfig{Self: "m2", Sections: []Section{
			{Name: "keys", Holds: func() (ledger.Ledger, error) { return items("old"), nil }},
			{Name: "grains", Holds: func() (ledger.Ledger, error) {
				rounds++
				return items(fmt.Sprint(rounds)), nil
			}},
			{Name: "mine", Holds: func() (ledger.Ledger, error) { return ledger.Ledger{}, errors.New("disk") }},
		}})
		mux := newMux()
		other.Handle(mux)
		net["m2"] = mux
		own := NewLedgers(LedgersConfig{
			Self: "m1", Others: func() []node.ID { return []node.ID{"m2", "m3"} }, Client: net.client(),
			Sections: []Section{
				{
					Name: "keys", Holds: func() (ledger.Ledger, error) { return items("new"), nil },
					Decided: func() ledger.Ledger { return items("new") },
				},
				{Name: "grains", Holds: func() (ledger.Ledger, error) { return items("2"), nil }},
				{Name: "mine", Holds: func() (ledger.Ledger, error) { return items("1"), nil }},
				{Name: "tokens", Holds: func() (ledger.Ledger, error) { return items("1"), nil }},
			},
		})
		v, err := Verifying{Of: func() (*Ledgers, error) { return own, nil }}.Verify(t.Context())
		if err != nil || v.From != "m1" || len(v.Sections) != 4 || v.Same() || v.Complete() {
			t.Fatalf("verification is %+v, %v", v, err)
		}
		keys, grains, mine, tokens := v.Sections[0], v.Sections[1], v.Sections[2], v.Sections[3]
		d := keys.Differences
		if len(d) != 1 || d[0].Item != "web1" || d[0].Nodes["m2"] != "old" || d[0].Nodes[adminapi.Decided] != "new" {
			t.Errorf("keys: %+v", keys)
		}
		if len(grains.Differences) != 0 || rounds != 2 {
			t.Errorf("grains after %d rounds: %+v", rounds, grains)
		}
		if !strings.Contains(mine.Missing["m2"], "disk") || !strings.Contains(mine.Missing["m3"], "refused") {
			t.Errorf("mine: %+v", mine)
		}
		if tokens.Missing["m2"] != "its saltclusterd is an older version" {
			t.Errorf("tokens: %+v", tokens)
		}
	})
}
