package history

import (
	"fmt"
	"slices"
	"strings"
)

// fate of a key after all decisions about it.
type fate int

const (
	either fate = iota // an outcome is unknown
	accepted
	gone
)

// fates follows the decisions about each key. The last decision holds, unless a decision to the contrary ran at the
// same time or has an outcome that was not seen: that one may come into force at any later moment.
func (j *judge) fates() map[string]fate {
	last := map[string]KeyOp{}
	for _, op := range j.KeyOps {
		if l, seen := last[op.ID]; op.Outcome == OK && (!seen || op.End.After(l.End)) {
			last[op.ID] = op
		}
	}
	out := map[string]fate{}
	for id, op := range last {
		out[id] = accepted
		if op.Verb == Delete {
			out[id] = gone
		}
	}
	for _, op := range j.KeyOps {
		l, contrary := last[op.ID], op.Verb != last[op.ID].Verb
		if contrary && (op.Outcome == Unknown || op.Outcome == OK && op.End.After(l.Start)) {
			out[op.ID] = either
		}
	}
	return out
}

// deleted: after a deletion that nothing followed, no node lets the key in. Probes are made at the end, with the
// cluster whole: a node that is cut off serves with what it knows.
func (j *judge) deleted() {
	fates := j.fates()
	for _, p := range j.Probes {
		if p.Worked && fates[p.ID] == gone {
			j.blame(Violation{Minion: p.ID}, RuleDeleted, "%s of the deleted %s worked on %s at %s: %s",
				p.What, p.ID, p.Node, j.clock(p.At), p.Detail)
		}
	}
}

func (j *judge) keys() {
	if len(j.Views) == 0 {
		return
	}
	first := j.Views[0]
	for _, v := range j.Views[1:] {
		for _, state := range unionKeys(first.Keys, v.Keys) {
			if a, b := sortedIDs(first.Keys[state]), sortedIDs(v.Keys[state]); !slices.Equal(a, b) {
				j.blame(Violation{}, RuleKeys, "%s: %s has %v, %s has %v", state, first.Node, missing(a, b), v.Node, missing(b, a))
			}
		}
	}
	fates := j.fates()
	for _, v := range j.Views {
		for _, id := range sorted(fates) {
			has := slices.Contains(v.Keys["minions"], id)
			if fates[id] == accepted && !has {
				j.blame(Violation{Minion: id}, RuleKeys, "%s was accepted, but is not on %s", id, v.Node)
			}
			if fates[id] == gone && has {
				j.blame(Violation{Minion: id}, RuleKeys, "%s was deleted, but is accepted on %s", id, v.Node)
			}
		}
	}
}

func (j *judge) oneCluster() {
	one := func(what string, get func(View) string) {
		by := map[string][]string{}
		for _, v := range j.Views {
			by[get(v)] = append(by[get(v)], v.Node)
		}
		if len(by) < 2 {
			return
		}
		var parts []string
		for _, k := range sorted(by) {
			parts = append(parts, fmt.Sprintf("%q on %s", k, strings.Join(by[k], ",")))
		}
		j.blame(Violation{}, RuleOneCluster, "%s: %s", what, strings.Join(parts, "; "))
	}
	one("cluster UUID", func(v View) string { return v.UUID })
	one("identity", func(v View) string { return v.Identity })
	one("AES key", func(v View) string { return v.AES })
	one("AES epoch", func(v View) string { return fmt.Sprint(v.Epoch) })
	one("leader", func(v View) string { return v.Leader })
	one("members", func(v View) string { return strings.Join(sortedIDs(v.Members), "; ") })
	for _, v := range j.Views {
		if v.Leader == "" {
			j.blame(Violation{}, RuleOneCluster, "%s knows no leader", v.Node)
		}
	}
	if len(j.Views) > 0 && len(j.Views) < len(j.Nodes) {
		j.blame(Violation{}, RuleOneCluster, "%d of %d nodes have told their view", len(j.Views), len(j.Nodes))
	}
}

func sortedIDs(ids []string) []string {
	out := slices.Clone(ids)
	slices.Sort(out)
	return out
}

func unionKeys(a, b map[string][]string) []string {
	all := map[string]bool{}
	for k := range a {
		all[k] = true
	}
	for k := range b {
		all[k] = true
	}
	return sorted(all)
}

// missing are the elements of a that b has not.
func missing(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
