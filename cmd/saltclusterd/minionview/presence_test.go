package minionview

import (
	"context"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/router"
)

func TestGroupSubscribers(t *testing.T) {
	sub := func(remote string, since time.Duration, topic string) edge.Subscriber {
		return edge.Subscriber{Remote: netip.MustParseAddrPort(remote), Since: since, Topic: topic}
	}
	groups, named := groupSubscribers([]edge.Subscriber{
		sub("10.0.0.1:1", time.Hour*2, ""), sub("10.0.0.2:1", 0, "broadcast"), sub("[::ffff:10.0.0.1]:2", time.Minute, ""),
		sub("10.0.0.1:3", 0, presence.Hash("web1")),
	}, "m1")
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	want := []presence.Group{{Node: "m1", From: one, Count: 2, Young: 1}, {Node: "m1", From: two, Count: 1, Young: 1}}
	check.DeepEqual(t, groups, want, "groups")
	if want := []presence.Named{{Node: "m1", From: one, Hash: presence.Hash("web1")}}; !reflect.DeepEqual(named, want) {
		t.Errorf("named: %+v", named)
	}
}

func TestChooseFiringNode(t *testing.T) {
	up := func(id node.ID) router.Node { return router.Node{ID: id, Alive: true, MasterUp: true} }
	down := func(id node.ID) router.Node { return router.Node{ID: id, Alive: true} }
	for _, c := range []struct {
		leader node.ID
		nodes  []router.Node
		want   node.ID
	}{
		{"m2", []router.Node{up("m1"), up("m2")}, "m2"},
		{"m2", []router.Node{up("m3"), down("m2"), up("m1")}, "m1"},
		{"witness", []router.Node{up("m2"), up("m1")}, "m1"},
		{"m1", []router.Node{down("m1")}, ""},
	} {
		if got := chooseFiringNode(router.View{Leader: c.leader, Nodes: c.nodes}); got != c.want {
			t.Errorf("%s of %v: %q", c.leader, c.nodes, got)
		}
	}
}

// A stock master has the same tags and keys, fires the change first, and only if there is one.
func TestMakeEvents(t *testing.T) {
	got := makeEvents(presence.Turn{Present: []string{"a", "b"}, New: []string{"b"}})
	want := []event{
		{"salt/presence/change", map[string]any{"new": []string{"b"}, "lost": []string(nil)}},
		{"salt/presence/present", map[string]any{"present": []string{"a", "b"}}},
	}
	check.DeepEqual(t, got, want)
	if got := makeEvents(presence.Turn{}); len(got) != 1 || got[0].tag != tagPresent {
		t.Errorf("without a change: %+v", got)
	}
}

func TestWantsEvents(t *testing.T) {
	dropIn, err := localmaster.DropIn(localmaster.DropInOptions{MasterID: "m1"})
	require.NoError(t, err)
	v, _ := localmaster.ParseVersion("3007.15")
	for _, c := range []struct {
		name, option, master string
		dropIn               bool
		want                 bool
	}{
		{"default", config.PresenceAuto, "", true, false},
		{"master with the drop-in", config.PresenceAuto, "presence_events: True", true, true},
		{"master without the drop-in", config.PresenceAuto, "presence_events: True", false, false},
		{"option on", config.PresenceOn, "", false, true},
		{"option off", config.PresenceOff, "presence_events: True", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "master")
			write(t, path, "root_dir: "+dir+"\n"+c.master+"\n")
			if c.dropIn {
				dropInPath := filepath.Join(dir, "master.d", localmaster.DropInName)
				if _, err := localmaster.WriteDropIn(dropInPath, localmaster.DropInOptions{MasterID: "m1"}); err != nil {
					t.Fatal(err)
				}
			}
			master, err := localmaster.LoadConfig(path, v)
			require.NoError(t, err)
			if got, err := wantsEvents(c.option, master); got != c.want || err != nil {
				t.Errorf("%t, %v; the drop-in:\n%s", got, err, dropIn)
			}
		})
	}
}

func TestReadMark(t *testing.T) {
	v := newTestNode(t, &testCluster{}, "m1").View
	p := v.presence
	if got := p.readMark(); got.Term != 0 {
		t.Errorf("mark of a new node is %+v", got)
	}
	p.writeMark(presence.Mark{Term: 3, N: 4, IDs: []string{"web1"}})
	if got := p.readMark(); got.Term != 3 || len(got.IDs) != 1 {
		t.Errorf("mark is %+v", got)
	}
	write(t, p.markPath(), `{"at":"2020-01-02T03:04:05Z","told":{"term":3,"n":4,"ids":["web1"]}}`)
	if got := p.readMark(); got.Term != 0 {
		t.Errorf("old mark counts: %+v", got)
	}
	write(t, p.markPath(), `{"at":`)
	if got := p.readMark(); got.Term != 0 {
		t.Errorf("damaged mark is %+v", got)
	}
}

// ids returns the minions of a presence that are alive.
func ids(p adminapi.Presence) (out []string) {
	for _, m := range p.Present {
		out = append(out, m.ID)
	}
	return out
}

func TestPresence_OtherNode(t *testing.T) {
	c := &testCluster{}
	a, b := newTestNode(t, c, "m1"), newTestNode(t, c, "m2")
	addr := netip.MustParseAddrPort("10.0.0.1:5")
	b.subscribers = []edge.Subscriber{{Remote: addr}}
	b.meet("web1", addr)
	b.meet("ghost", addr) // has no key
	got, err := a.verbs().Presence(t.Context())
	if err != nil || !slices.Equal(ids(got), []string{"web1"}) ||
		got.Present[0].Node != "m2" || got.Present[0].Address != "10.0.0.1" {
		t.Fatalf("presence is %+v, %v", got, err)
	}
	c.stop("m2")
	a.presence.refreshed = time.Time{}
	got, err = a.verbs().Presence(t.Context())
	if err != nil || !slices.Equal(ids(got), []string{"web1"}) || !slices.Equal(got.Missing, []string{"m2"}) {
		t.Errorf("presence while m2 is down is %+v, %v", got, err)
	}
	a.presence.peers["m2"].at = time.Now().Add(-2 * maxReportAge)
	a.presence.refreshed = time.Time{}
	if got, err = a.verbs().Presence(t.Context()); err != nil || len(got.Present) != 0 || len(got.Absent) != 2 {
		t.Errorf("presence long after m2 went down is %+v, %v", got, err)
	}
}

func TestTakeTurn(t *testing.T) {
	c := &testCluster{}
	a, b := newTestNode(t, c, "m1"), newTestNode(t, c, "m2")
	addr := netip.MustParseAddrPort("10.0.0.1:5")
	a.subscribers = []edge.Subscriber{{Remote: addr}}
	a.meet("web1", addr)
	c.stop("m2")
	a.presence.refresh(t.Context())
	if turn, ok := a.presence.takeTurn(1); ok {
		t.Errorf("a live node does not report, and the turn is %+v", turn)
	}
	c.start("m2")
	a.presence.refreshed = time.Time{}
	a.presence.refresh(t.Context())
	if turn, ok := a.presence.takeTurn(1); !ok || !slices.Equal(turn.New, []string{"web1"}) {
		t.Errorf("turn is %+v, %t", turn, ok)
	}
	if got := a.presence.readMark(); !slices.Equal(got.IDs, []string{"web1"}) {
		t.Errorf("mark on disk is %+v", got)
	}
	b.presence.refresh(t.Context()) // m2 gets the mark from m1 and keeps it
	if got := b.presence.readMark(); !slices.Equal(got.IDs, []string{"web1"}) {
		t.Errorf("mark on the disk of m2 is %+v", got)
	}
}

func TestFireEvents(t *testing.T) {
	c := &testCluster{}
	a := newTestNode(t, c, "m1")
	a.cfg.PresenceEvents = config.PresenceOn
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.KeepPresence(ctx)
	}()
	if e := <-a.bus; e.tag != tagPresent {
		t.Errorf("event is %+v", e)
	}
	cancel()
	<-done
}
