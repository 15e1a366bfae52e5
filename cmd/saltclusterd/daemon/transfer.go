package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	pathTransfer = "/v1/transfer"
	maxTransfer  = 1 << 10
)

type transferCall struct {
	To node.ID `json:"to"`
}

// Transfer implements admin.Governor: another node leads.
func (d *Daemon) Transfer(ctx context.Context, r adminapi.TransferRequest, p admin.Progress) (adminapi.Outcome, error) {
	m := d.current()
	if m == nil {
		return adminapi.Outcome{}, d.errNoMember()
	}
	to, before := node.ID(r.To), m.cons.Leader()
	if to != "" && m.cons.Leader() == to {
		return m.led(to, "already"), nil
	}
	p("leader", "handing the leadership over")
	if err := m.transfer(ctx, to); err != nil {
		return adminapi.Outcome{}, err
	}
	if r.NoWait {
		return m.handedOver(to), nil
	}
	for leader := m.cons.Leader(); ; leader = m.cons.Leader() { // this node hears of it a moment later
		if leader != "" && (leader == to || to == "" && leader != before) {
			return m.led(leader, "now"), nil
		}
		if !backoff.Sleep(ctx, catchUpPoll) {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl members shows who leads", "the hand-over was not seen in time")
		}
	}
}

func (m *member) led(id node.ID, when string) adminapi.Outcome {
	return adminapi.Outcome{
		Node: string(id), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Role: adminapi.RoleVoter,
		Message: fmt.Sprintf("%s leads the cluster %s %s", id, m.seed.ClusterID, when),
	}
}

// handedOver tells who does not wait for what this node will hear of it.
func (m *member) handedOver(to node.ID) adminapi.Outcome {
	return adminapi.Outcome{
		Node: string(to), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Role: adminapi.RoleVoter,
		Message: "the leadership was handed over", Next: []string{"saltclusterctl members shows who leads"},
	}
}

// transfer makes to the leader, or whoever is fit when to is empty, wherever the leader is. Who leads may change on the way, and
// this node may not know yet who does, so it is tried for a while.
func (m *member) transfer(ctx context.Context, to node.ID) error {
	within, cancel := context.WithTimeout(ctx, freshView)
	defer cancel()
	for {
		err := m.tryTransfer(ctx, to)
		if _, final := errors.AsType[*adminapi.Error](err); err == nil || final || !backoff.Sleep(within, removedPoll) {
			return err
		}
	}
}

func (m *member) tryTransfer(ctx context.Context, to node.ID) error {
	leader := m.awaitLeader(ctx)
	if leader == "" {
		return m.noQuorum(fmt.Errorf("no leader"))
	}
	if leader == to {
		return nil
	}
	if to == "" {
		to = m.heir(leader)
	}
	st := m.cons.Status()
	switch {
	case to == "":
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl members shows who votes", "no other voter is there to lead")
	case !slices.Contains(st.Voters, to):
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl members shows who votes", "%s does not vote, so it cannot lead", to)
	case !m.alive(to):
		return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl members shows who is there", "%s does not answer, so it cannot lead", to)
	}
	if leader == m.d.id {
		return m.cons.TransferLeadership(ctx, to)
	}
	_, err := transferRPC.Call(ctx, m.client(), leader, transferCall{to})
	return err
}

// awaitLeader waits as long as an election takes.
func (m *member) awaitLeader(ctx context.Context) node.ID {
	ctx, cancel := context.WithTimeout(ctx, freshView)
	defer cancel()
	for {
		if leader := m.cons.Leader(); leader != "" || !backoff.Sleep(ctx, catchUpPoll) {
			return leader
		}
	}
}

// heir is who should lead after the present leader: alive, voting, with a salt-master if there is one.
func (m *member) heir(leader node.ID) (heir node.ID) {
	voters := m.cons.Status().Voters
	for _, mem := range m.cons.View().Members() {
		switch {
		case mem.ID == leader || mem.Draining || !slices.Contains(voters, mem.ID) || !m.alive(mem.ID) || m.stopping(mem.ID):
		case !mem.Witness:
			return mem.ID
		case heir == "":
			heir = mem.ID
		}
	}
	return heir
}

// stopping says whether a node tells that it lets its minions go.
func (m *member) stopping(id node.ID) bool {
	g, ok := m.gossip.Member(id)
	return ok && id != m.d.id && g.Meta.Draining
}

var transferRPC = peerrpc.Endpoint[transferCall, peerrpc.None]{
	Method: http.MethodPost, Path: pathTransfer, MaxQuestion: maxTransfer, MaxAnswer: maxTransfer,
}

func (m *member) transferForPeer(ctx context.Context, _ node.ID, c transferCall) (peerrpc.None, error) {
	if err := m.cons.TransferLeadership(ctx, c.To); err != nil {
		m.log.Warn("leadership not handed over", "node", c.To, "err", err)
		return peerrpc.None{}, &peerrpc.Error{Status: http.StatusConflict, Text: err.Error()}
	}
	return peerrpc.None{}, nil
}
