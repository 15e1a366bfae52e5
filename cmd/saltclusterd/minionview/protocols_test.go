package minionview

import (
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/wall"
)

func TestWriteProtocols(t *testing.T) {
	n := newTestNode(t, &testCluster{}, "m1")
	path := n.cfg.protocolsPath()
	n.prove("web1", 3)
	n.writeProtocols(false)
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), `"web1"`) {
		t.Fatalf("file is %s, %v", text, err)
	}
	require.NoError(t, os.Remove(path))
	n.writeProtocols(false)
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is written again without news")
	}
	n.writeProtocols(true)
	if _, err := os.Stat(path); err != nil {
		t.Error("sightings are not written:", err)
	}
}

func TestReadProtocols(t *testing.T) {
	n := newTestNode(t, &testCluster{}, "m1")
	n.ReadProtocols()
	n.prove("web1", 3)
	n.writeProtocols(false)
	n.cfg.Wall = wall.New(wall.Config{})
	n.ReadProtocols()
	if got := n.cfg.Wall.Proofs(); len(got) != 1 || got[0].ID != "web1" || got[0].Version != 3 {
		t.Errorf("proofs are %+v", got)
	}
	write(t, n.cfg.protocolsPath(), `[{"id":`)
	n.cfg.Wall = wall.New(wall.Config{})
	n.ReadProtocols()
	if got := n.cfg.Wall.Proofs(); len(got) != 0 {
		t.Errorf("proofs of a damaged file are %+v", got)
	}
}

func TestProtocols_OtherNode(t *testing.T) {
	c := &testCluster{}
	a, b := newTestNode(t, c, "m1"), newTestNode(t, c, "m2")
	newTestNode(t, c, "m3")
	c.stop("m3")
	b.prove("web1", 3)
	got := a.protocols(t.Context())
	if len(got.Minions) != 1 || got.Minions[0].Node != "m2" || !slices.Equal(got.Unheard, []string{"web2"}) ||
		!slices.Equal(got.Missing, []string{"m3"}) {
		t.Errorf("protocols are %+v", got)
	}
	a.cfg.MinVersion = sessionKeys
	a.fetchProtocols(t.Context())
	if proofs := a.cfg.Wall.Proofs(); len(proofs) != 0 {
		t.Errorf("proofs are fetched although only the newest version is let in: %+v", proofs)
	}
	a.cfg.MinVersion = 0
	a.fetchProtocols(t.Context())
	if proofs := a.cfg.Wall.Proofs(); len(proofs) != 1 || proofs[0].Version != 3 {
		t.Errorf("fetched proofs are %+v", proofs)
	}
}

// The node of a minion is the one that it sends its requests to, not one that they are relayed to.
func TestMergeProofs(t *testing.T) {
	key := wall.HashKey("key")
	at := func(s int64) time.Time { return time.Unix(1_700_000_000+s, 0).UTC() }
	web, other := netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("192.0.2.8")
	early := &wall.Returned{JID: "1", Fun: "test.ping", At: at(1)}
	late := &wall.Returned{JID: "2", Fun: "test.arg", At: at(2)}
	lateRow := &adminapi.MinionReturn{JID: "2", Function: "test.arg", At: at(2)}
	for _, c := range []struct {
		name   string
		proofs map[node.ID][]wall.Proof
		want   adminapi.MinionProtocol
	}{
		{"one node", map[node.ID][]wall.Proof{
			"m1": {{ID: "web1", Key: key, Version: 3, Latest: 3, Seen: at(5), Met: at(5), From: web, Returned: late}},
		}, adminapi.MinionProtocol{Version: 3, Latest: 3, Seen: at(5), Node: "m1",
			Address: "192.0.2.7", Returned: lateRow}},
		{"relayed", map[node.ID][]wall.Proof{
			"m1": {{ID: "web1", Key: key, Version: 3, Latest: 3, Seen: at(6)}},
			"m2": {{ID: "web1", Key: key, Version: 3, Latest: 2, Seen: at(5), Met: at(5), From: web}},
		}, adminapi.MinionProtocol{Version: 3, Latest: 3, Seen: at(6), Node: "m2", Address: "192.0.2.7"}},
		{"moved", map[node.ID][]wall.Proof{
			"m1": {{ID: "web1", Key: key, Version: 2, Latest: 2, Seen: at(9), Met: at(9), From: other, Returned: early}},
			"m2": {{ID: "web1", Key: key, Version: 3, Latest: 3, Seen: at(5), Met: at(5), From: web, Returned: late}},
		}, adminapi.MinionProtocol{Version: 3, Latest: 2, Seen: at(9), Node: "m1",
			Address: "192.0.2.8", Returned: lateRow}},
		{"before the start", map[node.ID][]wall.Proof{
			"m2": {{ID: "web1", Key: key, Version: 3}},
			"m3": {{ID: "web1", Key: key, Version: 3, Met: at(3), From: web}},
		}, adminapi.MinionProtocol{Version: 3, Seen: at(3), Node: "m3", Address: "192.0.2.7"}},
		{"a former key", map[node.ID][]wall.Proof{
			"m1": {{ID: "web1", Key: key, Version: 2}},
			"m2": {{ID: "web1", Key: wall.HashKey("former"), Version: 3, Met: at(3), From: web}},
		}, adminapi.MinionProtocol{Version: 2, Node: "m1"}},
	} {
		c.want.ID = "web1"
		got := mergeProofs(c.proofs, func(id string) (wall.KeyHash, bool) { return key, id == "web1" })
		if len(got) != 1 || !reflect.DeepEqual(got["web1"], c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
