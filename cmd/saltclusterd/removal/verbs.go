package removal

import (
	"context"
	"fmt"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/returns"
)

// Verbs implements admin.Governor for a node that may be no member.
type Verbs struct {
	Of func() (*Remover, error) // of the running membership
}

// Remove implements admin.Governor: a node leaves the cluster, dead or alive, this one or another one.
func (v Verbs) Remove(ctx context.Context, q adminapi.RemoveRequest, p admin.Progress) (adminapi.Outcome, error) {
	r, err := v.Of()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	id, err := node.ParseID(q.Node)
	if err != nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl members lists them", "%v", err)
	}
	if err := r.checkRemoval(ctx, id, q.Force, p); err != nil {
		return adminapi.Outcome{}, err
	}
	aside := 0 // as checkRemoval has made sure without force
	if q.Force {
		aside = r.cfg.Drains.CountAside(ctx, id)
	} else {
		r.cfg.Drains.Empty(ctx, id, p)
	}
	if r.cfg.Log.Leader() == id {
		p("leader", string(id)+" is the leader: transferring the leadership")
		r.transferLeadership(ctx, id)
	}
	mem, _ := r.cfg.Log.View().Member(id)
	p("roster", "removing "+string(id)+" from the members: its certificate is no longer accepted")
	if err := r.removeInTurn(ctx, id, q.Force, p); err != nil {
		return adminapi.Outcome{}, err
	}
	r.cfg.Logger.Info("node removed", "node", id)
	out := r.outcome(mem, aside)
	if id == r.cfg.Self {
		r.awaitOwnEnd(ctx)
	} else if q.NoWait || !r.awaitRemoved(ctx, id, p) {
		out.Next = append(out.Next,
			"the leader is still removing its vote and changing the gossip key; check with saltclusterctl members")
	}
	return out, nil
}

// outcome describes a removal. aside is how many returns stay on the node that was removed.
func (r *Remover) outcome(mem state.Member, aside int) adminapi.Outcome {
	id := string(mem.ID)
	out := adminapi.Outcome{
		Node: id, ClusterID: r.cfg.ClusterID, UUID: r.cfg.UUID,
		Message: fmt.Sprintf("%s was removed from the cluster %s", id, r.cfg.ClusterID),
		Next: []string{
			"on " + id + ": stop saltclusterd and the salt-master, or let it rejoin with saltclusterctl join PEER",
		},
	}
	if !mem.Witness {
		out.Next = append(out.Next,
			"remove it from the load balancers: saltclusterctl haproxy prints a configuration without it")
	}
	if r.cfg.TakesSecret() {
		out.Next = append(out.Next, "if its disk may be in other hands: "+id+
			" can join again with the cluster secret until saltclusterctl rotate secret --now replaces it")
	}
	if aside > 0 {
		out.Next = append(out.Next, "on "+id+": "+returns.DescribeAside(aside)+"; no other node has them")
	}
	return out
}
