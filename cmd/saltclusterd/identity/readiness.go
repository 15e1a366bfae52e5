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

// readiness is what the minions with an accepted key have pinned.
type readiness struct {
	ready   []string
	former  []string // they signed in, with the former key
	foreign []string // with neither
	unseen  []string // they have not signed in since the change was begun, or since the node that knew was started
	missing []string // nodes that could not be asked
}

func (s readiness) behind() int { return len(s.former) + len(s.foreign) + len(s.unseen) }

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

// lines names them, some of each kind.
func (s readiness) lines() (out []string) {
	for _, kind := range []struct {
		what string
		ids  []string
	}{
		{"still pinned to the former key", s.former}, {"pinned to a key that is neither", s.foreign},
		{"not seen to sign in since (away, or not asked to)", s.unseen}, {"nodes that could not be asked", s.missing},
	} {
		if len(kind.ids) > 0 {
			out = append(out, fmt.Sprintf("%s, %d: %s", kind.what, len(kind.ids), some(kind.ids)))
		}
	}
	return out
}

// count says how many minions have pinned the identity in question.
func (s readiness) count() string {
	return fmt.Sprintf("%s %s pinned it, %d %s not", wording.Plural(len(s.ready), "minion"), wording.Choose(len(s.ready), "has", "have"), s.behind(), wording.Choose(s.behind(), "has", "have"))
}

// shownIDs bounds how many ids are named in a sentence.
const shownIDs = 50

func some(ids []string) string {
	if len(ids) <= shownIDs {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:shownIDs], ", ") + ", …"
}

// askReadiness asks all nodes.
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
