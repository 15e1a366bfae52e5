package membership

import (
	"context"
	"slices"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/ring"
)

// FindMaster finds the member with a salt-master that an operator names; this node if the name is empty.
func (m *Member) FindMaster(name string) (node.ID, error) {
	id := m.cfg.Self
	if name != "" {
		id = node.ID(name)
	}
	var known []string
	for _, mem := range m.Consensus.View().Members() {
		if mem.ID == id && mem.Witness {
			return "", adminapi.Errorf(adminapi.CodeInvalid, "", "%s is a witness: it has no minions", id)
		}
		if mem.ID == id {
			return id, nil
		}
		known = append(known, string(mem.ID))
	}
	return "", adminapi.Errorf(adminapi.CodeNotFound, "members are "+strings.Join(known, ", "), "%q is not a member", name)
}

// Voters lists the members that vote.
func (m *Member) Voters() []node.ID { return m.Consensus.Status().Voters }

// IsVoter says whether this node votes.
func (m *Member) IsVoter() bool { return slices.Contains(m.Voters(), m.cfg.Self) }

// IsDraining says whether another member reports that its minions leave it.
func (m *Member) IsDraining(id node.ID) bool {
	g, ok := m.Gossip.Member(id)
	return ok && id != m.cfg.Self && g.Meta.Draining
}

// IsServing says whether gossip sees a member that reports to serve.
func (m *Member) IsServing(id node.ID) bool {
	g, ok := m.Gossip.Member(id)
	return ok && g.State == gossip.Alive && g.Meta.Ready
}

// Term returns the term of raft, and whether a majority can be reached.
func (m *Member) Term() (term uint64, quorum bool) {
	st := m.Consensus.Status()
	return st.Term, st.HasQuorum
}

// Ring lists the members that have a master, as the ring of jobs takes them.
func (m *Member) Ring() []ring.Node {
	var out []ring.Node
	for _, mem := range m.Consensus.View().Members() {
		if !mem.Witness {
			out = append(out, ring.Node{ID: mem.ID, Weight: max(mem.Weight, 1)})
		}
	}
	return out
}

// UsableRing lists the members that can take requests now, as the ring of requests takes them.
func (m *Member) UsableRing() []ring.Node {
	var out []ring.Node
	for _, n := range m.Routes().Nodes {
		if n.Usable() {
			out = append(out, ring.Node{ID: n.ID, Weight: n.Weight, Draining: n.Draining})
		}
	}
	return out
}

// JobReplicas lists the nodes that shall have a job. A node that is down or drained for a while stays one of them.
func (m *Member) JobReplicas(jid string) []node.ID {
	want, masters := m.cfg.Options.Cluster.JobReplicas, m.Ring()
	if len(masters) > want {
		return ring.Ranked(jid, masters)[:want]
	}
	out := make([]node.ID, 0, len(masters))
	for _, n := range masters {
		out = append(out, n.ID)
	}
	return out
}

const (
	// inheritedFor is how long the view of a process before this one holds at most.
	inheritedFor = 5 * time.Second
	peersPoll    = 50 * time.Millisecond
)

// AwaitPeers waits, for some seconds at most, until gossip has found the members that are alive in a view that
// SetRoutes has put in force.
func (m *Member) AwaitPeers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, inheritedFor)
	defer cancel()
	known := m.Routes().Nodes
	for {
		missing := false
		for _, n := range known {
			g, ok := m.Gossip.Member(n.ID)
			missing = missing || n.Alive && n.ID != m.cfg.Self && (!ok || !g.Meta.Ready)
		}
		if !missing || !backoff.Sleep(ctx, peersPoll) {
			return
		}
	}
}
