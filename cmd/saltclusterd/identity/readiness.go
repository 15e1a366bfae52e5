package identity

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// readiness sorts the minions with an accepted key by the master key that they have pinned.
type readiness struct {
	ready   []string // the key in question
	former  []string // the former one
	foreign []string // neither
	unseen  []string // no sign-in since the change began, or since the node that saw it was started
	missing []string // nodes that could not be asked
}

// countBehind returns how many minions have not been seen to pin the key in question.
func (s readiness) countBehind() int { return len(s.former) + len(s.foreign) + len(s.unseen) }

// sortMinions sorts ids of minions by their pins; fp is the fingerprint of the key in question.
func sortMinions(accepted []string, pins map[string]pin, fp string) (s readiness) {
	for _, id := range accepted {
		switch p, ok := pins[id]; {
		case !ok:
			s.unseen = append(s.unseen, id)
		case p.FP == fp:
			s.ready = append(s.ready, id)
		case p.FP == "":
			s.foreign = append(s.foreign, id)
		default:
			s.former = append(s.former, id)
		}
	}
	return s
}

// describe names the minions and nodes that are behind, by kind.
func (s readiness) describe() (out []string) {
	for _, kind := range []struct {
		what string
		ids  []string
	}{
		{"still pinned to the former key", s.former}, {"pinned to a third key", s.foreign},
		{"no sign-in since (offline, or not asked to sign in)", s.unseen}, {"nodes that could not be asked", s.missing},
	} {
		if len(kind.ids) > 0 {
			out = append(out, fmt.Sprintf("%s, %d: %s", kind.what, len(kind.ids), joinSome(kind.ids)))
		}
	}
	return out
}

// summarize returns how many minions have pinned the key in question and how many have not.
func (s readiness) summarize() string {
	ready, behind := len(s.ready), s.countBehind()
	return fmt.Sprintf("%s %s pinned it, %d %s not", wording.Plural(ready, "minion"), wording.Choose(ready, "has", "have"),
		behind, wording.Choose(behind, "has", "have"))
}

// shownIDs bounds how many ids are named in a sentence.
const shownIDs = 50

// joinSome joins the first ids.
func joinSome(ids []string) string {
	if len(ids) <= shownIDs {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:shownIDs], ", ") + ", …"
}

// askReadiness asks all nodes what their minions have pinned.
func (c *Change) askReadiness(ctx context.Context, agreed state.IdentityChange) readiness {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	var ids []node.ID
	for _, mem := range c.cfg.Log.View().Members() {
		if !mem.Witness {
			ids = append(ids, mem.ID)
		}
	}
	answers := peerrpc.AskAll(ctx, ids, c.askPins)
	var accepted []string
	c.cfg.Log.View().Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			accepted = append(accepted, k.ID)
		}
		return true
	})
	slices.Sort(accepted)
	s := sortMinions(accepted, latestPins(agreed.FP, slices.Collect(maps.Values(answers.Of))), agreed.FP)
	s.missing = answers.Missing()
	return s
}
