package drain

import (
	"context"
	"fmt"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Verbs implements admin.Drainer for a node that may be no member.
type Verbs struct {
	Of func() (*Cluster, error) // of the running membership
}

// Drain implements admin.Drainer.
func (v Verbs) Drain(ctx context.Context, r adminapi.DrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	c, id, err := v.findNode(r.Node)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if !r.Force && !c.cfg.Routes().OthersServe(id) {
		return adminapi.Outcome{}, errNoOtherNode(id)
	}
	reached := c.sendOptions(ctx, id, Options{Over: r.Over, WaitJobs: r.WaitJobs}) == nil
	if !reached {
		p("tell", fmt.Sprintf("%s does not answer: it takes no minions when it is back", id))
	}
	if err := c.Decide(ctx, id, true); err != nil {
		return adminapi.Outcome{}, err
	}
	if !r.Force && !c.othersStay(id) { // another operator drained the others first
		if err := c.Decide(ctx, id, false); err != nil {
			return adminapi.Outcome{}, err
		}
		return adminapi.Outcome{}, errNoOtherNode(id)
	}
	out := c.newOutcome(id, "is being drained")
	if !r.Wait || !reached {
		return out, nil
	}
	if err := c.awaitPhase(ctx, id, Drained, r.WaitJobs, p); err != nil {
		return adminapi.Outcome{}, err
	}
	out = c.newOutcome(id, "is drained: it has no minions and takes none")
	out.Next = []string{"when its work is done: saltclusterctl undrain " + string(id)}
	return out, nil
}

// Undrain implements admin.Drainer.
func (v Verbs) Undrain(ctx context.Context, r adminapi.UndrainRequest, p admin.Progress) (adminapi.Outcome, error) {
	c, id, err := v.findNode(r.Node)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	if err := c.Decide(ctx, id, false); err != nil {
		return adminapi.Outcome{}, err
	}
	if _, err := c.fetchReport(ctx, id); err == nil && r.Wait {
		if err := c.awaitPhase(ctx, id, Serving, false, p); err != nil {
			return adminapi.Outcome{}, err
		}
	}
	return c.newOutcome(id, "takes minions"), nil
}

func (v Verbs) findNode(name string) (*Cluster, node.ID, error) {
	c, err := v.Of()
	if err != nil {
		return nil, "", err
	}
	id, err := c.cfg.Find(name)
	return c, id, err
}

func errNoOtherNode(id node.ID) error {
	return adminapi.Errorf(adminapi.CodeRefused,
		"saltclusterctl members: undrain or start another node first, or join one; --force overrides this",
		"no other node serves minions: those of %s would have nowhere to go", id)
}
