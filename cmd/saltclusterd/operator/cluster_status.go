package operator

import (
	"context"
	"slices"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// ClockCheck is the name of the health check of a host's clock.
const ClockCheck = "clock"

// fillStatus adds what a member knows to the status of its node.
func (c *Cluster) fillStatus(ctx context.Context, st *adminapi.Status) {
	cons := c.cfg.Log.Status()
	v := c.cfg.Log.View()
	stats := c.AskAll(ctx, v.Members())
	st.Members = c.rows(v.Members(), stats)
	st.Cluster = &adminapi.Cluster{
		ID: c.cfg.ClusterID, UUID: c.cfg.UUID, Leader: string(cons.Leader), Term: cons.Term,
		Epoch: v.Epochs().Current.N, IdentityFingerprint: c.cfg.Fingerprint,
		Quorum: countQuorum(st.Members, cons.Voters, cons.HasQuorum),
	}
	st.Cluster.Generation, st.Cluster.Rev = v.Generation(), v.Rev()
	for _, id := range cons.Voters {
		st.Cluster.VoterIDs = append(st.Cluster.VoterIDs, string(id))
	}
	for _, m := range st.Members {
		st.Problems = append(st.Problems, c.memberProblems(m, cons.HasQuorum)...)
	}
	st.Problems = append(st.Problems, c.cfg.Problems(stats)...)
	c.cfg.FillNode(&st.Node)
	st.Node.Sync = c.cfg.Sync()
}

// memberProblems lists what is wrong with a member, as this node sees it.
func (c *Cluster) memberProblems(m adminapi.Member, quorum bool) []adminapi.Problem {
	away := m.State == adminapi.StateFailed || m.State == adminapi.StateLeft
	switch {
	case away && !quorum && m.Role == adminapi.RoleVoter: // the lost majority is the finding, and names who is down
	case away:
		hint := "start saltclusterd there (without it salt on that host reaches no minion), " +
			"or check the network on the peer port"
		if quorum { // else no member can be removed
			hint += "; if it is gone for good: saltclusterctl remove " + m.ID
		}
		return []adminapi.Problem{{Level: adminapi.LevelFail, Node: m.ID, Message: "does not answer", Hint: hint}}
	case m.Draining && m.Self: // its health says so
	case m.Draining:
		return []adminapi.Problem{{
			Level: adminapi.LevelWarn, Node: m.ID, Message: "is drained, or being drained: it takes no minions",
			Hint: "when its work is done: saltclusterctl undrain " + m.ID,
		}}
	case !m.Self && len(m.Health) > 0:
		return c.problemsOf(m)
	case !m.Self && m.Ready != nil && !*m.Ready:
		return []adminapi.Problem{{
			Level: adminapi.LevelWarn, Node: m.ID, Message: describeNotReady(m),
			Hint: "saltclusterctl status on that node says why",
		}}
	}
	return nil
}

// problemsOf lists the faults that another node finds with itself. They are warnings here, because this node works. A
// clock that this node has read it judges itself: the other one may have nothing to compare its own with.
func (c *Cluster) problemsOf(m adminapi.Member) (out []adminapi.Problem) {
	for _, r := range m.Health {
		if r.Check == ClockCheck && c.cfg.ClockFresh(node.ID(m.ID)) {
			continue
		}
		out = append(out, adminapi.Problem{Level: adminapi.LevelWarn, Node: m.ID, Message: r.Message, Hint: r.Hint})
	}
	return out
}

// describeNotReady says that another node is not ready, and what it lacks.
func describeNotReady(m adminapi.Member) string {
	text := "is not ready"
	if syncing := adminapi.SyncText(m.Sync); syncing != "" {
		text += ": catching up with " + syncing
	}
	return text
}

func countQuorum(members []adminapi.Member, voters []node.ID, ok bool) adminapi.Quorum {
	q := adminapi.Quorum{OK: ok}
	for _, m := range members {
		if !slices.Contains(voters, node.ID(m.ID)) {
			continue
		}
		q.Voters++
		if m.State == adminapi.StateAlive {
			q.Alive++
		}
	}
	q.Need = q.Voters/2 + 1
	return q
}
