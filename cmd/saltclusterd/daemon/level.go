package daemon

import (
	"strings"
	"time"

	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// versionGrace is how long this node waits for the version of members that it has not seen since it started.
const versionGrace = 15 * time.Second

// knows says whether all members understand the commands of a level (state.Level): an older saltclusterd stops when it
// meets one in the log. One that is down while all others are upgraded does so when it comes back, and has to be
// upgraded then.
func (m *member) knows(level uint16) error {
	return levelKnown(level, m.otherMembers(), m.gossip.Member, time.Since(m.since))
}

// otherMembers lists the members but this node.
func (m *member) otherMembers() (others []node.ID) {
	for _, mem := range m.cons.View().Members() {
		if mem.ID != m.d.id {
			others = append(others, mem.ID)
		}
	}
	return others
}

// membersWithout lists the members that do not understand something, and those whose version is not known yet. has
// tells from what a member says of itself whether it understands.
func membersWithout(
	others []node.ID, look func(node.ID) (gossip.Member, bool), up time.Duration, has func(node.Meta) bool,
) (older, unseen []string) {
	for _, id := range others {
		g, ok := look(id)
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

// membersWithoutRoots lists the members that do not understand commands about roots, and those whose version is not
// known yet.
func (m *member) membersWithoutRoots() (older, unseen []string) {
	hasRoots := func(meta node.Meta) bool { return meta.Roots }
	return membersWithout(m.otherMembers(), m.gossip.Member, time.Since(m.since), hasRoots)
}

func levelKnown(level uint16, others []node.ID, look func(node.ID) (gossip.Member, bool), up time.Duration) error {
	older, unseen := membersWithout(others, look, up, func(meta node.Meta) bool { return meta.Level >= level })
	switch {
	case len(older) > 0:
		return adminapi.Errorf(adminapi.CodeRefused, "upgrade saltclusterd there, then repeat this",
			"the saltclusterd of %s does not know this yet", strings.Join(older, ", "))
	case len(unseen) > 0:
		return adminapi.Errorf(adminapi.CodeUnavailable, "wait some seconds and repeat this",
			"it is not known yet which version of saltclusterd runs on %s", strings.Join(unseen, ", "))
	}
	return nil
}
