package membership

import (
	"context"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

const (
	// versionGrace is how long this node waits for the version of members that it has not seen since it started.
	versionGrace = 15 * time.Second
	// levelEvery is how often the leader checks whether the members understand more than they have agreed on.
	levelEvery = 2 * time.Second
)

// Knows says whether all members understand the commands of a level (state.Level): an older saltclusterd stops when it
// meets one in the log. One that is down while all others are upgraded does so when it comes back, and has to be
// upgraded then.
func (m *Member) Knows(level uint16) error {
	return levelKnown(level, m.Others(), m.Gossip.Member, time.Since(m.Since))
}

// WithoutRoots lists the members that do not understand commands about roots, and those whose version is not known yet.
func (m *Member) WithoutRoots() (older, unseen []string) {
	hasRoots := func(meta node.Meta) bool { return meta.Roots }
	return membersWithout(m.Others(), m.Gossip.Member, time.Since(m.Since), hasRoots)
}

// KeepLevel is the leader's duty: commands come to mean more when all members have said that they understand it, those
// that are down included. A member that was never seen is waited for.
func (m *Member) KeepLevel(ctx context.Context) {
	for backoff.Poll(ctx, levelEvery) {
		agreed := m.Consensus.View().Level()
		if agreed >= state.Level {
			continue
		}
		least := leastLevel(m.Others(), m.Gossip.Member)
		if least <= agreed {
			continue
		}
		results, err := m.Consensus.Propose(ctx, state.LevelSet{Level: least, Audit: m.Audit("all members know it")})
		if err == nil {
			err = results[0].Err()
		}
		if err != nil && ctx.Err() == nil {
			m.log.Warn("level not raised", "err", err)
		}
	}
}

// leastLevel is what this node and all others understand.
func leastLevel(others []node.ID, find func(node.ID) (gossip.Member, bool)) uint16 {
	least := uint16(state.Level)
	for _, id := range others {
		g, ok := find(id)
		if !ok {
			return 0
		}
		least = min(least, g.Meta.Level)
	}
	return least
}

// membersWithout lists the members that do not understand something, and those whose version is not known yet. has
// tells from what a member says of itself whether it understands.
func membersWithout(
	others []node.ID, find func(node.ID) (gossip.Member, bool), up time.Duration, has func(node.Meta) bool,
) (older, unseen []string) {
	for _, id := range others {
		g, ok := find(id)
		switch {
		case ok && has(g.Meta):
		case ok && g.State == gossip.Alive && g.Meta.Build != "":
			older = append(older, string(id))
		case up < versionGrace:
			unseen = append(unseen, string(id))
		}
	}
	return older, unseen
}

func levelKnown(level uint16, others []node.ID, find func(node.ID) (gossip.Member, bool), up time.Duration) error {
	older, unseen := membersWithout(others, find, up, func(meta node.Meta) bool { return meta.Level >= level })
	switch {
	case len(older) > 0:
		return adminapi.Errorf(adminapi.CodeRefused, "upgrade saltclusterd there, then repeat this",
			"the saltclusterd of %s is too old for this", strings.Join(older, ", "))
	case len(unseen) > 0:
		return adminapi.Errorf(adminapi.CodeUnavailable, "wait some seconds and repeat this",
			"it is not known yet which version of saltclusterd runs on %s", strings.Join(unseen, ", "))
	}
	return nil
}
