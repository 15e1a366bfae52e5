package daemon

import (
	"net/netip"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/router"
)

func TestConnectionsFromOneAddressAreTakenTogether(t *testing.T) {
	sub := func(remote string, since time.Duration, topic string) edge.Subscriber {
		return edge.Subscriber{Remote: netip.MustParseAddrPort(remote), Since: since, Topic: topic}
	}
	groups, named := gather([]edge.Subscriber{
		sub("10.0.0.1:1", time.Hour*2, ""), sub("10.0.0.2:1", 0, "broadcast"), sub("[::ffff:10.0.0.1]:2", time.Minute, ""),
		sub("10.0.0.1:3", 0, presence.Hash("web1")),
	}, "m1")
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if want := []presence.Group{{Node: "m1", From: one, Count: 2, Young: 1}, {Node: "m1", From: two, Count: 1, Young: 1}}; !reflect.DeepEqual(groups, want) {
		t.Errorf("groups: %+v", groups)
	}
	if want := []presence.Named{{Node: "m1", From: one, Hash: presence.Hash("web1")}}; !reflect.DeepEqual(named, want) {
		t.Errorf("named: %+v", named)
	}
}

func TestTeller(t *testing.T) {
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
		if got := teller(router.View{Leader: c.leader, Nodes: c.nodes}); got != c.want {
			t.Errorf("%s of %v: %q", c.leader, c.nodes, got)
		}
	}
}

// The events are those of a stock master: the same tags, the same keys, the change first and only when there is one.
func TestPresenceEvents(t *testing.T) {
	got := presenceEvents(presence.Turn{Present: []string{"a", "b"}, New: []string{"b"}})
	want := []presenceEvent{
		{"salt/presence/change", map[string]any{"new": []string{"b"}, "lost": []string(nil)}},
		{"salt/presence/present", map[string]any{"present": []string{"a", "b"}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := presenceEvents(presence.Turn{}); len(got) != 1 || got[0].tag != tagPresent {
		t.Errorf("without a change: %+v", got)
	}
}

func TestWhoWantsPresenceEvents(t *testing.T) {
	dropIn, err := localmaster.DropIn(localmaster.DropInOptions{MasterID: "m1"})
	if err != nil {
		t.Fatal(err)
	}
	v, _ := localmaster.ParseVersion("3007.15")
	for _, c := range []struct {
		name, option, master string
		dropIn               bool
		want                 bool
	}{
		{"nobody", config.PresenceAuto, "", true, false},
		{"the master, and its drop-in keeps it quiet", config.PresenceAuto, "presence_events: True", true, true},
		{"the master fires them itself", config.PresenceAuto, "presence_events: True", false, false},
		{"an operator", config.PresenceOn, "", false, true},
		{"an operator does not", config.PresenceOff, "presence_events: True", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "master")
			write(t, path, "root_dir: "+dir+"\n"+c.master+"\n", 0o600)
			if c.dropIn {
				if _, err := localmaster.WriteDropIn(filepath.Join(dir, "master.d", localmaster.DropInName), localmaster.DropInOptions{MasterID: "m1"}); err != nil {
					t.Fatal(err)
				}
			}
			master, err := localmaster.LoadConfig(path, v)
			if err != nil {
				t.Fatal(err)
			}
			cfg := config.DefaultConfig()
			cfg.Events.Presence = c.option
			if got, err := wantsPresenceEvents(&cfg, master); got != c.want || err != nil {
				t.Errorf("%t, %v; the drop-in:\n%s", got, err, dropIn)
			}
		})
	}
}

// What was told is remembered over a restart, and a node that starts says that nobody is there.
func TestPresenceOfANode(t *testing.T) {
	n := startNode(t, "m1", t.TempDir())
	if _, err := n.Bootstrap(t.Context(), adminapi.BootstrapRequest{}, quiet); err != nil {
		t.Fatal(err)
	}
	var k *presenceKeeper
	eventually(t, "who is present", func() error {
		p, err := n.Presence(t.Context())
		if err == nil && (len(p.Present) != 0 || p.From != "m1" || len(p.Missing) != 0) {
			t.Errorf("%+v", p)
		}
		return err
	})
	k = n.current().svc.presence
	k.store(presence.Mark{Term: 3, N: 4, IDs: []string{"web1"}})
	if got := k.recall(); got.Term != 3 || len(got.IDs) != 1 {
		t.Errorf("%+v", got)
	}
	write(t, k.path(), `{"at":"2020-01-02T03:04:05Z","told":{"term":3,"n":4,"ids":["web1"]}}`, 0o600)
	if got := k.recall(); got.Term != 0 {
		t.Errorf("what was told long ago is remembered: %+v", got)
	}
	write(t, k.path(), `{"at":`, 0o600)
	if got := k.recall(); got.Term != 0 {
		t.Errorf("damaged: %+v", got)
	}
}
