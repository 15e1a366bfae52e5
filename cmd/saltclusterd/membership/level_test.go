package membership

import (
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
)

func TestLevelKnown(t *testing.T) {
	newer := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "2", Level: state.LevelJoin}}
	older := gossip.Member{State: gossip.Alive, Meta: node.Meta{Build: "1"}}
	down := gossip.Member{State: gossip.Dead}
	for _, tc := range []struct {
		name string
		seen map[node.ID]gossip.Member
		up   time.Duration
		want string
	}{
		{"all", map[node.ID]gossip.Member{"b": newer, "c": newer}, 0, ""},
		{"an older one", map[node.ID]gossip.Member{"b": newer, "c": older}, time.Hour, "the saltclusterd of c is too old"},
		{"one that is down", map[node.ID]gossip.Member{"b": newer, "c": down}, time.Hour, ""},
		{"one that was not seen yet", map[node.ID]gossip.Member{"b": newer}, time.Second,
			"which version of saltclusterd runs on c"},
	} {
		err := levelKnown(state.LevelJoin, []node.ID{"b", "c"}, func(id node.ID) (gossip.Member, bool) {
			m, ok := tc.seen[id]
			return m, ok
		}, tc.up)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestLeastLevel(t *testing.T) {
	member := func(level uint16, s gossip.State) gossip.Member {
		return gossip.Member{State: s, Meta: node.Meta{Level: level}}
	}
	for _, tc := range []struct {
		name string
		seen map[node.ID]gossip.Member
		want uint16
	}{
		{"all", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(state.Level+1, gossip.Alive)},
			state.Level},
		{"an older one", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive), "c": member(1, gossip.Alive)}, 1},
		{"one from before levels", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive),
			"c": member(0, gossip.Alive)}, 0},
		{"one that went down", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive),
			"c": member(state.Level, gossip.Dead)}, state.Level},
		{"one that was never seen", map[node.ID]gossip.Member{"b": member(state.Level, gossip.Alive)}, 0},
	} {
		got := leastLevel([]node.ID{"b", "c"}, func(id node.ID) (gossip.Member, bool) { m, ok := tc.seen[id]; return m, ok })
		if got != tc.want {
			t.Errorf("%s: %d", tc.name, got)
		}
	}
}

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
