package drain

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/router"
)

const (
	// decideWithin is how long the cluster has to decide about a drain.
	decideWithin = 10 * time.Second
	// reportPoll is how often a node is asked how far its drain is while an operator waits.
	reportPoll = 500 * time.Millisecond
)

// ClusterConfig is what a Cluster works with.
type ClusterConfig struct {
	Self      node.ID
	ClusterID string
	UUID      string // of the cluster
	Log       Log
	Own       func() *Runner // this node's; not called on a witness
	Voters    func() []node.ID
	Alive     func(node.ID) bool
	Routes    func() router.View
	Client    peerrpc.Client
	Audit     func(cause string) state.Audit
	Find      func(name string) (node.ID, error) // the member with a salt-master that an operator names; empty: this node
	Undecided func(context.Context, error) bool  // whether a proposal failed because no majority decided it in time
	NoQuorum  func(error) error                  // makes the error that operators get then

	DrainTime time.Duration // that a drain takes by its options, all in all
}

// Cluster decides about the drains of all members, and follows them. A witness has one.
type Cluster struct{ cfg ClusterConfig }

// NewCluster returns a Cluster.
func NewCluster(cfg ClusterConfig) *Cluster { return &Cluster{cfg} }

// fetchReport asks a node how far its drain is.
func (c *Cluster) fetchReport(ctx context.Context, id node.ID) (Report, error) {
	if id == c.cfg.Self {
		return c.cfg.Own().Report(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return reportRPC.Call(ctx, c.cfg.Client, id, peerrpc.None{})
}

// sendOptions gives a node the options of its next drain.
func (c *Cluster) sendOptions(ctx context.Context, id node.ID, o Options) error {
	if id == c.cfg.Self {
		c.cfg.Own().setOptions(o)
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	_, err := optionsRPC.Call(ctx, c.cfg.Client, id, o)
	return err
}

// Decide stores in the consensus log that a node is drained, or that it is not.
func (c *Cluster) Decide(ctx context.Context, id node.ID, drained bool) error {
	cause := "drain"
	if !drained {
		cause = "undrain"
	}
	deciding, cancel := context.WithTimeout(ctx, decideWithin)
	defer cancel()
	results, err := c.cfg.Log.Propose(deciding, state.MemberSet{ID: id, Draining: &drained, Audit: c.cfg.Audit(cause)})
	switch undecided := c.cfg.Undecided(ctx, err); {
	case undecided && !drained:
		return c.cfg.NoQuorum(err)
	case undecided:
		return adminapi.Errorf(adminapi.CodeNoQuorum,
			"systemctl stop saltclusterd on that node: it also hands its minions over step by step",
			"no majority of the cluster can be reached, which %s needs", cause)
	case err != nil:
		return fmt.Errorf("%s %s: %w", cause, id, err)
	}
	if err := results[0].Err(); err != nil {
		return adminapi.Errorf(adminapi.CodeRefused, "", "%s %s: %v", cause, id, err)
	}
	return nil
}

// wantedBy returns the verb that asks for a phase.
func wantedBy(want Phase) string {
	if want == Drained {
		return "drain"
	}
	return "undrain"
}

// othersStay says whether another node that is alive is to serve minions, by what the cluster has decided up to now.
func (c *Cluster) othersStay(id node.ID) bool {
	for _, m := range c.cfg.Log.View().Members() {
		if m.ID != id && !m.Witness && !m.Draining && c.cfg.Alive(m.ID) {
			return true
		}
	}
	return false
}

// awaitPhase waits until a node has reached a phase, and its jobs have ended if that is wanted, and reports progress.
// It looks at the jobs itself, because a drain that has ended, or was started without WaitJobs, does not wait for them.
func (c *Cluster) awaitPhase(ctx context.Context, id node.ID, want Phase, jobs bool, p admin.Progress) error {
	said, most := "", 0                   // connections at the start
	started, decided := time.Now(), false // what another node decided reaches this node's view a moment later
	for {
		r, err := c.fetchReport(ctx, id)
		step, text := strings.ReplaceAll(string(r.Phase), " ", "-"), r.sentence(id)
		if err != nil {
			step, text = "wait", fmt.Sprintf("%s does not answer", id)
		}
		if text != said {
			said = text
			left := r.Subscribers + r.Connections
			if most = max(most, left); err == nil && want == Drained && most > 0 {
				p(step, text, 100*(most-left)/most)
			} else {
				p(step, text)
			}
		}
		if err == nil && r.Phase == want && !(jobs && r.Jobs > 0) {
			return nil
		}
		m, ok := c.cfg.Log.View().Member(id)
		wanted := ok && m.Draining == (want == Drained)
		decided = decided || wanted
		if !wanted && (decided || time.Since(started) > decideWithin) {
			return adminapi.Errorf(adminapi.CodeRefused, "", "the %s of %s was cancelled elsewhere", wantedBy(want), id)
		}
		if !backoff.Sleep(ctx, reportPoll) {
			return context.Cause(ctx)
		}
	}
}

func (c *Cluster) newOutcome(id node.ID, what string) adminapi.Outcome {
	out := adminapi.Outcome{
		Node: string(id), ClusterID: c.cfg.ClusterID, UUID: c.cfg.UUID, Role: adminapi.RoleLearner,
		Message: fmt.Sprintf("%s %s", id, what),
	}
	if slices.Contains(c.cfg.Voters(), id) {
		out.Role = adminapi.RoleVoter
	}
	for _, n := range c.cfg.Routes().Nodes {
		if n.ID == id {
			out.Ready = n.Alive && !n.Draining
		}
	}
	return out
}
