package leadership

import (
	"context"
	"fmt"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const hintMembers = "saltclusterctl members shows who leads"

// Verbs implements admin.Transferrer for a node that may be no member.
type Verbs struct {
	Of func() (*Control, error) // of the running membership
}

// Transfer implements admin.Transferrer: another member leads.
func (v Verbs) Transfer(ctx context.Context, r adminapi.TransferRequest, p admin.Progress) (adminapi.Outcome, error) {
	c, err := v.Of()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	to, before := node.ID(r.To), c.cfg.Log.Leader()
	if to != "" && before == to {
		return c.describeLeader(to, "already"), nil
	}
	p("leader", "handing the leadership over")
	if err := c.Transfer(ctx, to); err != nil {
		return adminapi.Outcome{}, err
	}
	if r.NoWait {
		return c.outcome(to, "the leadership was handed over", hintMembers), nil
	}
	for { // this node learns of the new leader a moment later
		if leader := c.cfg.Log.Leader(); leader != "" && (leader == to || to == "" && leader != before) {
			return c.describeLeader(leader, "now"), nil
		}
		if !backoff.Sleep(ctx, leaderPoll) {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeTimeout, hintMembers, "the hand-over was not confirmed in time")
		}
	}
}

func (c *Control) describeLeader(id node.ID, when string) adminapi.Outcome {
	return c.outcome(id, fmt.Sprintf("%s leads the cluster %s %s", id, c.cfg.ClusterID, when))
}

func (c *Control) outcome(leader node.ID, message string, next ...string) adminapi.Outcome {
	return adminapi.Outcome{
		Node: string(leader), ClusterID: c.cfg.ClusterID, UUID: c.cfg.UUID, Role: adminapi.RoleVoter,
		Message: message, Next: next,
	}
}
