package daemon

import (
	"strings"
	"time"

	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// knows says whether all members understand the commands of a level (state.Level): an older saltclusterd stops when it
// meets one in the log. One that is down while all others are upgraded does so when it comes back, and has to be upgraded then.
func (m *member) knows(level uint16) error {
	var others []node.ID
	for _, mem := range m.cons.View().Members() {
		if mem.ID != m.d.id {
			others = append(others, mem.ID)
		}
	}
	return levelKnown(level, others, m.gossip.Member, time.Since(m.since))
}

func levelKnown(level uint16, others []node.ID, look func(node.ID) (gossip.Member, bool), up time.Duration) error {
	var older, unseen []string
	for _, id := range others {
		g, ok := look(id)
		switch {
		case ok && g.Meta.Level >= level:
		case ok && g.State == gossip.Alive && g.Meta.Build != "":
			older = append(older, string(id))
		case up < rootsGrace:
			unseen = append(unseen, string(id))
		}
	}
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
