package daemon

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Version implements admin.Reporter.
func (d *Daemon) Version(context.Context) (adminapi.Version, error) {
	return adminapi.Version{
		Node: string(d.id), Version: d.version, SaltVersion: d.saltVersion(), Go: runtime.Version(),
		API: adminapi.APIVersion, PID: os.Getpid(), Started: d.started.UnixMilli(),
	}, nil
}

// Config implements admin.Reporter.
func (d *Daemon) Config(context.Context) (adminapi.Config, error) { return d.cfg.Show(), nil }

const startingText = "this node is a member of a cluster, and is starting"

// starting says of a node without a running membership that it has one on its disk.
func (d *Daemon) starting() bool {
	m, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	return err == nil && m != nil
}

// currentService is this node's service for minions; nil on a node without a cluster, and on a witness.
func (d *Daemon) currentService() *service {
	if m := d.current(); m != nil {
		return m.svc
	}
	return nil
}

// service is currentService, or an error for an operator.
func (d *Daemon) service() (*service, error) {
	if s := d.currentService(); s != nil {
		return s, nil
	}
	return nil, d.errNoMember()
}

// errNoMember is the answer of a node without a cluster, be it that it was in none yet, or that it was removed.
func (d *Daemon) errNoMember() error {
	if left, err := membership.ReadRemoval(d.cfg.Paths.StateDir); err == nil && left != nil {
		return adminapi.Errorf(adminapi.CodeNotMember, membership.RejoinHint, "%s", left.Sentence())
	}
	if d.starting() {
		return adminapi.Errorf(adminapi.CodeNotMember, "ask again: it takes seconds", startingText)
	}
	return adminapi.Errorf(adminapi.CodeNotMember, "run saltclusterctl bootstrap here, or saltclusterctl join PEER",
		"this node belongs to no cluster yet")
}

// Members implements admin.Reporter.
func (d *Daemon) Members(ctx context.Context) (adminapi.Members, error) {
	m := d.current()
	if m == nil {
		return adminapi.Members{}, d.errNoMember()
	}
	return adminapi.Members{ClusterID: m.seed.ClusterID, From: string(d.id), Members: m.members(ctx)}, nil
}

// statsTimeout bounds the question to each peer how far it is; one that is down must not hold up the others' rows.
const statsTimeout = time.Second

// members lists the roster with what gossip, raft and the nodes themselves say about each.
func (m *member) members(ctx context.Context) []adminapi.Member {
	roster := m.cons.View().Members()
	return m.rows(roster, m.allStats(ctx, roster))
}

func (m *member) rows(roster []state.Member, stats map[node.ID]nodeStats) []adminapi.Member {
	st := m.cons.Status()
	commit := st.Commit
	if s, ok := stats[st.Leader]; ok {
		commit = max(commit, s.Commit)
	}
	out := make([]adminapi.Member, 0, len(roster))
	for _, mem := range roster {
		row := m.row(mem, st)
		if s, ok := stats[mem.ID]; ok {
			row.Term, row.Sync, row.Unanswered = s.Term, s.Sync, s.Unanswered
			withHealth(&row, s.Reasons)
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

// allStats asks every member that gossip sees, all at once.
func (m *member) allStats(ctx context.Context, roster []state.Member) map[node.ID]nodeStats {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	type answer struct {
		id node.ID
		s  nodeStats
		ok bool
	}
	answers := make(chan answer, len(roster))
	for _, mem := range roster {
		if mem.ID == m.d.id {
			answers <- answer{mem.ID, m.localStats(), true}
			continue
		}
		go func() { // ends with the context, one second at most
			s, err := m.nodeStats(ctx, mem.ID)
			answers <- answer{mem.ID, s, err == nil}
		}()
	}
	out := make(map[node.ID]nodeStats, len(roster))
	for range roster {
		if a := <-answers; a.ok {
			out[a.id] = a.s
		}
	}
	return out
}

// row is one member as gossip and raft's configuration show it.
func (m *member) row(mem state.Member, st consensus.Status) adminapi.Member {
	row := adminapi.Member{
		ID: string(mem.ID), Address: mem.Addr, Role: adminapi.RoleLearner, State: adminapi.StateFailed,
		Leader: mem.ID == st.Leader, Draining: mem.Draining, Self: mem.ID == m.d.id,
	}
	switch {
	case mem.Witness:
		row.Role = adminapi.RoleWitness
	case slices.Contains(st.Voters, mem.ID):
		row.Role = adminapi.RoleVoter
	}
	meta := m.meta()
	if !row.Self {
		g, ok := m.gossip.Member(mem.ID)
		if !ok {
			return row
		}
		row.State = gossipState(g.State)
		meta = g.Meta
		if g.State != gossip.Alive {
			row.SaltVersion, row.Version = meta.Salt, meta.Build
			return row
		}
	}
	row.State = adminapi.StateAlive
	row.Draining = row.Draining || meta.Draining
	subscribers := int(meta.Subscribers)
	row.SaltVersion, row.Version, row.Ready, row.Subscribers = meta.Salt, meta.Build, &meta.Ready, &subscribers
	return row
}

func gossipState(s gossip.State) adminapi.State {
	switch s {
	case gossip.Alive:
		return adminapi.StateAlive
	case gossip.Left:
		return adminapi.StateLeft
	default:
		return adminapi.StateFailed
	}
}

// isVoter says whether this node votes.
func (m *member) isVoter(st consensus.Status) bool { return slices.Contains(st.Voters, m.d.id) }

// outcome describes what bootstrap or join made of this node.
func (d *Daemon) outcome(ctx context.Context) (adminapi.Outcome, error) {
	seed, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	out := adminapi.Outcome{
		Node: string(d.id), ClusterID: seed.ClusterID, UUID: seed.UUID, Role: adminapi.RoleLearner,
		Message: fmt.Sprintf("%s is a member of the cluster %s", d.id, seed.ClusterID),
	}
	if m := d.current(); m != nil {
		if m.isVoter(m.cons.Status()) {
			out.Role = adminapi.RoleVoter
		}
		out.Ready = m.ready()
		if m.svc == nil {
			out.Role = adminapi.RoleWitness
		} else if m.svc.held.Load() {
			out.Next = append(out.Next, "systemctl restart salt-master: it has the ports for minions, and goes to loopback; saltclusterd takes them then")
		} else if problem := m.svc.masterProblem(ctx); problem != "" {
			out.Next = append(out.Next, problem)
		}
	}
	return out, nil
}

// RingInfo implements admin.Reporter.
func (d *Daemon) RingInfo(_ context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error) {
	m := d.current()
	if m == nil {
		return adminapi.RingInfo{}, d.errNoMember()
	}
	if err := q.Validate(); err != nil {
		return adminapi.RingInfo{}, err
	}
	return m.ringInfo(q), nil
}

// Status implements admin.Reporter.
func (d *Daemon) Status(ctx context.Context) (adminapi.Status, error) {
	st := adminapi.Status{Node: adminapi.Node{
		ID: string(d.id), Version: d.version, SaltVersion: d.saltVersion(), Started: d.started,
	}}
	d.fillHealth(ctx, &st)
	m := d.current()
	if m == nil {
		if left, err := membership.ReadRemoval(d.cfg.Paths.StateDir); err == nil && left != nil {
			st.Removed = left.Sentence()
		} else {
			st.Starting = d.starting()
		}
		if err := d.joiner.Problem(); err != nil {
			st.Problems = append(st.Problems, adminapi.Problem{
				Level: adminapi.LevelFail, Node: string(d.id), Message: "the last attempt to join failed: " + err.Error(),
				Hint: "check cluster_peers, and that one of them is a member",
			})
		}
		return st, nil
	}
	m.fillStatus(ctx, &st)
	return st, nil
}
