package operator

import (
	"context"
	"slices"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Members lists the roster with what gossip, raft and the nodes themselves report about each.
func (c *Cluster) Members(ctx context.Context) []adminapi.Member {
	roster := c.cfg.Log.View().Members()
	return c.rows(roster, c.AskAll(ctx, roster))
}

func (c *Cluster) rows(roster []state.Member, stats map[node.ID]Stats) []adminapi.Member {
	st := c.cfg.Log.Status()
	commit := st.Commit
	if s, ok := stats[st.Leader]; ok {
		commit = max(commit, s.Commit)
	}
	out := make([]adminapi.Member, 0, len(roster))
	for _, m := range roster {
		row := c.Row(m, st)
		if s, ok := stats[m.ID]; ok {
			row.Term, row.Sync, row.Unanswered = s.Term, s.Sync, s.Unanswered
			addHealth(&row, s.Reasons)
			lag := uint64(0)
			if commit > s.Commit {
				lag = commit - s.Commit
			}
			row.Lag = &lag
		}
		out = append(out, row)
	}
	return out
}

// addHealth adds what the node itself reports. Gossip only says whether it serves minions, which a node that is cut off
// still does: its row must not be ready above a line that says the opposite.
func addHealth(row *adminapi.Member, reasons []adminapi.Reason) {
	if row.Ready == nil {
		return
	}
	row.Health = reasons
	for _, r := range reasons {
		if r.Level == adminapi.LevelFail {
			row.Reasons = append(row.Reasons, r.Check)
		}
	}
	ready := *row.Ready && len(row.Reasons) == 0
	row.Ready = &ready
}

// Row returns one member as gossip and raft's configuration show it.
func (c *Cluster) Row(m state.Member, st consensus.Status) adminapi.Member {
	row := adminapi.Member{
		ID: string(m.ID), Address: m.Addr, Role: adminapi.RoleLearner, State: adminapi.StateFailed,
		Leader: m.ID == st.Leader, Draining: m.Draining, Self: m.ID == c.cfg.Self,
	}
	switch {
	case m.Witness:
		row.Role = adminapi.RoleWitness
	case slices.Contains(st.Voters, m.ID):
		row.Role = adminapi.RoleVoter
	}
	meta := c.cfg.Meta()
	if !row.Self {
		g, ok := c.cfg.Gossip.Member(m.ID)
		if !ok {
			return row
		}
		row.State = stateOf(g.State)
		meta = g.Meta
		if g.State != gossip.Alive {
			row.SaltVersion, row.Version, row.Since = meta.Salt, meta.Build, g.Since
			return row
		}
	}
	row.State = adminapi.StateAlive
	row.Draining = row.Draining || meta.Draining
	subscribers := int(meta.Subscribers)
	row.SaltVersion, row.Version, row.Ready, row.Subscribers = meta.Salt, meta.Build, &meta.Ready, &subscribers
	return row
}

func stateOf(s gossip.State) adminapi.State {
	switch s {
	case gossip.Alive:
		return adminapi.StateAlive
	case gossip.Left:
		return adminapi.StateLeft
	default:
		return adminapi.StateFailed
	}
}
