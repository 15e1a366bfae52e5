package daemon

import (
	"slices"
	"testing"

	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
)

// Members without a capability are found, and those whose version is not known for some seconds.
func TestMembersWithout(t *testing.T) {
	newer := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "2", Roots: true}}
	older := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "1"}}
	down, downOld := newer, older
	down.State, downOld.State = gossip.Dead, gossip.Dead
	for _, tc := range []struct {
		name          string
		seen          map[node.ID]gossip.Member
		young         bool
		older, unseen []string
	}{
		{"all are new", map[node.ID]gossip.Member{"b": newer, "c": down}, true, nil, nil},
		{"one is old", map[node.ID]gossip.Member{"b": newer, "c": older}, false, []string{"c"}, nil},
		{"one was not seen yet", map[node.ID]gossip.Member{"b": newer}, true, nil, []string{"c"}},
		{"one is not seen for long", map[node.ID]gossip.Member{"b": newer}, false, nil, nil},
		{"an old one is down", map[node.ID]gossip.Member{"b": newer, "c": downOld}, false, nil, nil},
	} {
		up := versionGrace
		if tc.young {
			up = 0
		}
		look := func(id node.ID) (gossip.Member, bool) { g, ok := tc.seen[id]; return g, ok }
		hasRoots := func(meta node.Meta) bool { return meta.Roots }
		older, unseen := membersWithout([]node.ID{"b", "c"}, look, up, hasRoots)
		if !slices.Equal(older, tc.older) || !slices.Equal(unseen, tc.unseen) {
			t.Errorf("%s: older %q, unseen %q", tc.name, older, unseen)
		}
	}
}
