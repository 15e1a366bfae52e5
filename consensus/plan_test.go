package consensus

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// roster reads "m1 m2~ m3w": ~ marks a member without a vote, w a witness.
func roster(ids ...string) []state.Member {
	var out []state.Member
	for _, s := range ids {
		m := state.Member{ID: node.ID(s)}
		if s[len(s)-1] == '~' {
			m.ID, m.NonVoter = node.ID(s[:len(s)-1]), true
		}
		if s[len(s)-1] == 'w' {
			m.ID, m.Witness = node.ID(s[:len(s)-1]), true
		}
		out = append(out, m)
	}
	return out
}

// config reads "m1 m2~": ~ marks a learner.
func config(ids ...string) []server {
	var out []server
	for _, m := range roster(ids...) {
		out = append(out, server{m.ID, !m.NonVoter})
	}
	return out
}

func TestDecide(t *testing.T) {
	for _, tc := range []struct {
		name    string
		roster  []state.Member
		servers []server
		ready   []node.ID
		dead    []node.ID // for long; "m4?" is dead for a moment
		want    action
	}{
		{"unborn", nil, config("m1"), nil, nil, action{}},
		{"all is well", roster("m1", "m2"), config("m1", "m2"), nil, nil, action{}},
		{"a new member learns", roster("m1", "m2"), config("m1"), nil, nil, action{moveLearn, "m2"}},
		{"a learner that lags waits", roster("m1", "m2"), config("m1", "m2~"), nil, nil, action{}},
		{"a learner that is ready votes", roster("m1", "m2"), config("m1", "m2~"), []node.ID{"m2"}, nil,
			action{movePromote, "m2"}},
		{"who shall not vote does not", roster("m1", "m2~"), config("m1", "m2~"), []node.ID{"m2"}, nil, action{}},
		{"who shall not vote any more stops", roster("m1", "m2~"), config("m1", "m2"), nil, nil, action{moveDemote, "m2"}},
		{"three are enough", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4~"), []node.ID{"m4"}, nil, action{}},
		{"strangers go", roster("m1", "m2"), config("m1", "m2", "m3"), nil, nil, action{moveRemove, "m3"}},
		{"learners go first", roster("m1"), config("m1", "m2", "m3~"), nil, nil, action{moveRemove, "m3"}},
		{"the dead go before the living", roster("m1"), config("m1", "m2", "m3"), nil, []node.ID{"m3"},
			action{moveRemove, "m3"}},
		{"a living stranger stays while the rest is no majority", roster("m1", "m2"), config("m1", "m2", "m3"), nil,
			[]node.ID{"m2"}, action{}},
		{"a dead stranger goes also then", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4", "m5"), nil,
			[]node.ID{"m4", "m5"}, action{moveRemove, "m5"}},
		{"a vote is taken only when the rest is a majority", roster("m1", "m2~", "m3"), config("m1", "m2", "m3"), nil,
			[]node.ID{"m3"}, action{}},
		{"a dead voter keeps its vote for a while", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4~"),
			[]node.ID{"m4"}, []node.ID{"m3?"}, action{}},
		{"a lost voter's vote goes to the reserve: taken", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4~"),
			[]node.ID{"m4"}, []node.ID{"m3"}, action{moveDemote, "m3"}},
		{"a lost voter's vote goes to the reserve: given", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3~", "m4~"),
			[]node.ID{"m4"}, []node.ID{"m3"}, action{movePromote, "m4"}},
		{"a lost voter without a reserve keeps its vote", roster("m1", "m2", "m3"), config("m1", "m2", "m3"), nil,
			[]node.ID{"m3"}, action{}},
		{"a reserve that lags gets no vote", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4~"), nil,
			[]node.ID{"m3"}, action{}},
		{"one too many: the lost one", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4"), nil, []node.ID{"m2"},
			action{moveDemote, "m2"}},
		{"one too many: the last one", roster("m1", "m2", "m3", "m4"), config("m1", "m2", "m3", "m4"), nil, nil,
			action{moveDemote, "m4"}},
		{"a witness does not lead", roster("m1w", "m2", "m3"), config("m1", "m2", "m3"), nil, nil,
			action{moveTransfer, "m2"}},
		{"a witness leads when nobody else can", roster("m1w", "m2", "m3"), config("m1", "m2", "m3"), nil,
			[]node.ID{"m2", "m3?"}, action{}},
		{"a witness is the last successor", roster("m2w", "m3"), config("m1", "m2", "m3"), nil, nil, action{moveTransfer, "m3"}},
		{"removal before growth", roster("m1", "m4"), config("m1", "m2"), nil, nil, action{moveRemove, "m2"}},
		{"a leader off the roster hands over", roster("m2", "m3"), config("m1", "m2", "m3"), nil, []node.ID{"m2"},
			action{moveTransfer, "m3"}},
		{"a leader without a vote hands over", roster("m1~", "m2"), config("m1", "m2"), nil, nil, action{moveTransfer, "m2"}},
		{"no successor yet: make one", roster("m2"), config("m1", "m2~"), []node.ID{"m2"}, nil, action{movePromote, "m2"}},
		{"no successor yet: wait", roster("m2"), config("m1", "m2~"), nil, nil, action{}},
	} {
		s := situation{self: "m1", roster: tc.roster, servers: tc.servers, ready: map[node.ID]bool{},
			lost: map[node.ID]bool{}, maxVoters: 3,
			alive: func(id node.ID) bool { return !slices.Contains(tc.dead, id) && !slices.Contains(tc.dead, id+"?") }}
		for _, id := range tc.dead {
			s.lost[id] = true
		}
		for _, id := range tc.ready {
			s.ready[id] = true
		}
		if got := decideChange(s); got != tc.want {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

// However it starts, following decide ends: with all members in the
// configuration, no strangers, and never without a voter on the way.
func TestDecideConverges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := []node.ID{"m1", "m2", "m3", "m4", "m5", "m6"}
		self := rapid.SampledFrom(ids).Draw(rt, "leader")
		conf := map[node.ID]bool{self: true}
		var members []state.Member
		ready := map[node.ID]bool{}
		for _, id := range ids {
			if id != self && rapid.Bool().Draw(rt, "configured") {
				conf[id] = rapid.Bool().Draw(rt, "voter")
			}
			if rapid.Bool().Draw(rt, "member") {
				members = append(members, state.Member{ID: id, NonVoter: rapid.IntRange(0, 3).Draw(rt, "nv") == 0})
			}
			ready[id] = true
		}
		voting := slices.ContainsFunc(members, func(m state.Member) bool { return !m.NonVoter })
		if !voting {
			return // the state does not allow it
		}
		most := rapid.IntRange(1, 5).Draw(rt, "most")
		for range 40 {
			s := situation{self: self, roster: members, ready: ready, maxVoters: most, alive: func(node.ID) bool { return true }}
			for id, voter := range conf {
				s.servers = append(s.servers, server{id, voter})
			}
			a := decideChange(s)
			switch a.move {
			case moveNone:
				for _, m := range members {
					if _, ok := conf[m.ID]; !ok {
						rt.Fatalf("%s is missing in %v", m.ID, conf)
					}
				}
				return
			case moveTransfer:
				self = a.id
			case moveRemove:
				delete(conf, a.id)
			case moveDemote, moveLearn:
				conf[a.id] = false
			case movePromote:
				conf[a.id] = true
			}
			if !slices.Contains(slices.Collect(maps.Values(conf)), true) || !conf[self] {
				rt.Fatalf("%+v: nobody votes, or the leader does not, in %v", a, conf)
			}
		}
		rt.Fatalf("it goes on for ever: %v, roster %+v", conf, members)
	})
}

// Whatever the situation, one step never costs a cluster the quorum it has.
func TestDecideKeepsTheQuorum(t *testing.T) {
	majority := func(conf []server, dead map[node.ID]bool) bool {
		voters, living := 0, 0
		for _, sv := range conf {
			if sv.voter {
				voters++
				if !dead[sv.id] {
					living++
				}
			}
		}
		return living >= voters/2+1
	}
	rapid.Check(t, func(rt *rapid.T) {
		dead := map[node.ID]bool{}
		s := situation{self: "m1", ready: map[node.ID]bool{}, lost: map[node.ID]bool{},
			maxVoters: rapid.IntRange(1, 5).Draw(rt, "most"),
			alive:     func(id node.ID) bool { return !dead[id] }, servers: []server{{"m1", true}}}
		for _, id := range []node.ID{"m1", "m2", "m3", "m4", "m5", "m6"} {
			if rapid.Bool().Draw(rt, "member") {
				s.roster = append(s.roster, state.Member{ID: id, NonVoter: rapid.IntRange(0, 4).Draw(rt, "nv") == 0,
					Witness: rapid.IntRange(0, 4).Draw(rt, "w") == 0})
			}
			if id == "m1" {
				continue
			}
			if rapid.Bool().Draw(rt, "configured") {
				s.servers = append(s.servers, server{id, rapid.Bool().Draw(rt, "voter")})
			}
			dead[id] = rapid.Bool().Draw(rt, "dead")
			s.lost[id] = dead[id] && rapid.Bool().Draw(rt, "lost")
			s.ready[id] = !dead[id] && rapid.Bool().Draw(rt, "ready")
		}
		if !majority(s.servers, dead) {
			return
		}
		a := decideChange(s)
		var after []server
		for _, sv := range s.servers {
			switch {
			case sv.id != a.id:
				after = append(after, sv)
			case a.move == moveRemove:
			default:
				after = append(after, server{sv.id, (sv.voter || a.move == movePromote) && a.move != moveDemote})
			}
		}
		if a.move == moveLearn {
			after = append(after, server{a.id, false})
		}
		if !majority(after, dead) {
			rt.Fatalf("%+v costs the quorum: %+v, dead %v", a, s.servers, dead)
		}
		if a.move == moveTransfer && dead[a.id] {
			rt.Fatalf("%+v: the successor is dead", a)
		}
	})
}
