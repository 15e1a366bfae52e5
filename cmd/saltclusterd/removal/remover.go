package removal

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	// viewTimeout is how long a removal waits for the newest decisions of the others.
	viewTimeout = 5 * time.Second
	// removalTimeout is how long it waits until nothing of the member is left.
	removalTimeout = 30 * time.Second
	removalPoll    = 100 * time.Millisecond
	// ownEndTimeout is how long a node that removes itself waits for the end of its own membership.
	ownEndTimeout = 5 * time.Second
)

// Log is the consensus log.
type Log interface {
	View() state.View
	Status() consensus.Status
	Leader() node.ID // empty: none is known
	Barrier(context.Context) error
	Propose(context.Context, ...state.Command) ([]state.Result, error)
}

// Drains empty members.
type Drains interface {
	// Empty drains a member and waits until it has handed over the returns that it keeps.
	Empty(context.Context, node.ID, admin.Progress)
	// CountAside returns how many returns a member has that its master does not answer.
	CountAside(context.Context, node.ID) int
	// HandOverAside makes a member hand these over. It returns how many are left, and why.
	HandOverAside(context.Context, node.ID) (left int, why string, err error)
}

// Config is what a Remover works with.
type Config struct {
	Self      node.ID
	ClusterID string
	UUID      string // of the cluster
	Log       Log
	Alive     func(node.ID) bool
	Drains    Drains
	Transfer  func(ctx context.Context, to node.ID) error // of the leadership; to empty: any voter that is fit
	Audit     func(cause string) state.Audit
	Left      func() (reason string, ok bool) // why this node is not a member any more
	Running   func() bool                     // whether this membership has not been closed
	// TakesSecret says whether a node can join with the cluster secret, which every member knows.
	TakesSecret func() bool
	Logger      *slog.Logger
}

// Remover removes members from the cluster. A witness has one.
type Remover struct{ cfg Config }

// New returns a Remover.
func New(cfg Config) *Remover { return &Remover{cfg} }

// NoQuorum returns the error that operators get when no majority can decide.
func (r *Remover) NoQuorum(err error) error {
	if reason, left := r.cfg.Left(); left { // the cluster may have a majority
		return errLeft(reason)
	}
	q := r.readQuorum()
	r.cfg.Logger.Warn("no majority for an admin operation", "err", err)
	return adminapi.Errorf(adminapi.CodeNoQuorum, q.hint(),
		"no majority of the cluster can be reached, so nothing can be decided%s", q.describeDown())
}

// QuorumHint says what to do about a lost majority.
func (r *Remover) QuorumHint() string { return r.readQuorum().hint() }

// errLeft is the error of an operation on a node that was removed meanwhile.
func errLeft(reason string) error {
	return adminapi.Errorf(adminapi.CodeNotMember, "saltclusterctl members on another node shows the result",
		"this node is no longer a member: %s", reason)
}

func (r *Remover) readQuorum() quorum {
	q := quorum{alive: map[node.ID]bool{}}
	v := r.cfg.Log.View()
	for _, id := range r.cfg.Log.Status().Voters {
		if _, ok := v.Member(id); ok { // else it was removed, and the next one is removed when its vote is gone
			q.voters = append(q.voters, id)
		}
	}
	for _, mem := range v.Members() {
		q.alive[mem.ID] = r.cfg.Alive(mem.ID)
		if !mem.Witness {
			q.masters = append(q.masters, mem.ID)
		}
	}
	return q
}

// checkRemoval says by the newest decisions whether a member may be removed. Without force it hands over the returns
// that only this member has, and must have handed over all of them.
func (r *Remover) checkRemoval(ctx context.Context, id node.ID, force bool, p admin.Progress) error {
	fresh, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	if err := r.cfg.Log.Barrier(fresh); err != nil {
		return r.NoQuorum(err)
	}
	if _, ok := r.cfg.Log.View().Member(id); !ok {
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl members lists them", "%s is not a member", id)
	}
	q := r.readQuorum()
	no := q.refuse(id)
	if no == nil && !force {
		q.aside, q.asideWhy = r.handOverAside(ctx, id, p)
		no = q.refuse(id)
	}
	if no != nil && !(force && no.forcible) {
		return adminapi.Errorf(adminapi.CodeRefused, no.hint, "%s", no.sentence)
	}
	return nil
}

// handOverAside makes a member hand over the returns that its master does not answer. It returns how many are left, and
// why.
func (r *Remover) handOverAside(ctx context.Context, id node.ID, p admin.Progress) (left int, why string) {
	if left = r.cfg.Drains.CountAside(ctx, id); left == 0 {
		return 0, ""
	}
	p("returns", fmt.Sprintf("%s: handing over to the other nodes the returns that its salt-master did not answer: %s",
		id, wording.Plural(left, "return")))
	still, why, err := r.cfg.Drains.HandOverAside(ctx, id)
	if err != nil {
		return left, err.Error() // an earlier version, perhaps
	}
	return still, why
}

// transferLeadership makes another member lead. If it fails, an election does the same a second later.
func (r *Remover) transferLeadership(ctx context.Context, from node.ID) {
	ctx, cancel := context.WithTimeout(ctx, viewTimeout)
	defer cancel()
	for r.cfg.Log.Leader() == from {
		if err := r.cfg.Transfer(ctx, ""); err != nil { // a drain may be doing the same
			r.cfg.Logger.Info("leadership not handed over yet", "node", from, "err", err)
		}
		if !backoff.Sleep(ctx, removalPoll) {
			return
		}
	}
}

// removeInTurn takes a member off the roster. The leader refuses while a member that was removed before still has its
// vote; each retry checks again whether the member may be removed, because others may have been removed meanwhile.
func (r *Remover) removeInTurn(ctx context.Context, id node.ID, force bool, p admin.Progress) error {
	waiting, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	for reported := false; ; reported = true {
		if err := r.checkRemoval(ctx, id, force, p); err != nil {
			return err
		}
		err := r.proposeRemoval(ctx, id)
		if !state.IsConflict(err) || !backoff.Sleep(waiting, removalPoll) {
			return err
		}
		if !reported {
			p("roster", "waiting: "+err.Error())
		}
	}
}

// proposeRemoval takes a member off the roster. A node that removes itself gets no answer when the others cut it off
// first.
func (r *Remover) proposeRemoval(ctx context.Context, id node.ID) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	ended := make(chan struct{})
	defer func() {
		cancel()
		<-ended
	}()
	go func() {
		defer close(ended)
		results, err := r.cfg.Log.Propose(ctx, state.MemberRemove{ID: id, Audit: r.cfg.Audit("remove")})
		if err == nil {
			err = results[0].Err()
		}
		done <- err
	}()
	for {
		var err error
		select {
		case err = <-done:
			if err == nil {
				return nil
			}
		case <-time.After(removalPoll):
		}
		switch reason, left := r.cfg.Left(); {
		case left && id == r.cfg.Self:
			return nil
		case left:
			return errLeft(reason)
		case err != nil:
			return fmt.Errorf("remove %s: %w", id, err)
		}
	}
}

// awaitRemoved waits until the member has no vote and does not have the gossip key.
func (r *Remover) awaitRemoved(ctx context.Context, id node.ID, p admin.Progress) bool {
	ctx, cancel := context.WithTimeout(ctx, removalTimeout)
	defer cancel()
	reported := ""
	for {
		step := ""
		st := r.cfg.Log.Status()
		switch {
		case slices.Contains(st.Voters, id), slices.Contains(st.Learners, id):
			step = "waiting for the leader to remove its vote"
		case r.cfg.Log.View().GossipDue():
			step = "waiting for the other nodes to get a new gossip key"
		default:
			return true
		}
		if step != reported {
			p("leader", step)
			reported = step
		}
		if !backoff.Sleep(ctx, removalPoll) {
			return false
		}
	}
}

// awaitOwnEnd waits until this node works as one that was removed. Until then the next verb, for example leave, would
// see a member without a majority.
func (r *Remover) awaitOwnEnd(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ownEndTimeout)
	defer cancel()
	for r.cfg.Running() && backoff.Sleep(ctx, removalPoll) {
	}
}
