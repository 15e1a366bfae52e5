package consensus

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// Bounds of one request; a longer Propose is sent as several.
const (
	requestCommands = 256
	requestBytes    = 128 << 10
)

// Pauses between the attempts of one request.
const (
	retryFirst = 5 * time.Millisecond
	retryMost  = 100 * time.Millisecond
)

// Propose has commands applied, wherever the leader is, and returns one result
// per command. It returns when they are in this node's own View (or Timing.Attempt
// later, on a node that lags), or when ctx (Timing.Propose without a deadline)
// ends: then with ErrNoLeader, which means that nothing was changed, or with
// ErrUncertain. Commands are independent of each other. By, At and SeenRev are filled in when empty. Many commands are
// sent in several steps; on an error the results of the steps done are
// returned with it.
func (n *Node) Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error) {
	for _, c := range cmds {
		if _, birth := c.(state.Init); birth || c == nil {
			return nil, fmt.Errorf("%w: nil or cluster.init", ErrInvalid)
		}
	}
	return n.proposeCommands(ctx, cmds)
}

func (n *Node) proposeCommands(ctx context.Context, cmds []state.Command) ([]state.Result, error) {
	if _, err := n.runningRaft(); err != nil {
		return nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, n.cfg.Timing.Propose)
		defer cancel()
	}
	began := time.Now()
	view := n.View()
	audit := state.Audit{By: n.cfg.ID, At: n.cfg.Now().UnixMilli()}
	stamped := make([]state.Command, len(cmds))
	for i, c := range cmds {
		stamped[i] = state.Stamp(c, audit, view.Rev())
	}
	steps, err := splitCommands(stamped)
	if err != nil {
		return nil, err
	}
	var all []state.Result
	var last uint64
	for _, s := range steps {
		o, err := n.retryRequest(ctx, state.Request{ID: n.ids.nextID(), Since: view.Seq(), Commands: s.cmds}, s.size)
		if err != nil {
			n.m.proposalFailed(err)
			return all, err
		}
		all = append(all, o.results...)
		last = max(last, o.index)
	}
	// The decision stands, even if it is not seen here in time.
	wait, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	_ = n.hub.waitUntil(wait, func() bool { return n.View().Index() >= last })
	n.m.observeProposal(time.Since(began))
	return all, nil
}

type step struct {
	cmds []state.Command
	size int
}

// splitCommands checks the commands and cuts them into requests.
func splitCommands(cmds []state.Command) ([]step, error) {
	var steps []step
	var cur step
	for i, c := range cmds {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("%w: command %d (%s): %w", ErrInvalid, i, c.Type(), err)
		}
		b, err := state.EncodeCommand(c)
		if err != nil {
			return nil, fmt.Errorf("%w: command %d: %w", ErrInvalid, i, err)
		}
		if len(cur.cmds) == requestCommands || (cur.size > 0 && cur.size+len(b) > requestBytes) {
			steps, cur = append(steps, cur), step{}
		}
		cur.cmds, cur.size = append(cur.cmds, c), cur.size+len(b)
	}
	if len(cur.cmds) > 0 {
		steps = append(steps, cur)
	}
	return steps, nil
}

// retryRequest tries until the request is applied or ctx ends. The request keeps its
// id, so an attempt that was applied without our hearing of it is found again
// and not repeated.
func (n *Node) retryRequest(ctx context.Context, req state.Request, size int) (outcome, error) {
	maybe := false
	pause := backoff.Backoff{Min: retryFirst, Max: retryMost}
	for {
		req.Retry = maybe
		o, fail := n.attemptRequest(ctx, req, size)
		if fail == nil {
			if len(o.results) > 0 && o.results[0].Code == state.OutcomeUnknown {
				return outcome{}, fmt.Errorf("propose: %w: %s", ErrUncertain, o.results[0].Message)
			}
			return o, nil
		}
		maybe = maybe || fail.maybe
		if fail.final {
			return outcome{}, proposalError(fail.err, maybe, false)
		}
		n.m.countRetry()
		select {
		case <-time.After(pause.Next()):
		case <-ctx.Done():
			return outcome{}, proposalError(fail.err, maybe, true)
		case <-n.ctx.Done():
			return outcome{}, proposalError(errors.Join(ErrClosed, n.Err()), maybe, false)
		}
	}
}

func proposalError(err error, maybe, late bool) error {
	switch {
	case maybe && late:
		return fmt.Errorf("propose: %w (%w): %w", ErrUncertain, ErrNoLeader, err)
	case maybe:
		return fmt.Errorf("propose: %w: %w", ErrUncertain, err)
	case late:
		return fmt.Errorf("propose: %w: %w", ErrNoLeader, err)
	}
	return fmt.Errorf("propose: %w", err)
}

// attemptRequest brings the request to whoever leads at the moment, once.
func (n *Node) attemptRequest(ctx context.Context, req state.Request, size int) (outcome, *attemptError) {
	r, err := n.runningRaft()
	if err != nil {
		return outcome{}, &attemptError{err: err, final: true}
	}
	if n.leads(r) {
		return n.batch.submitRequest(ctx, req, size)
	}
	leader := n.Leader()
	if leader == "" || leader == n.cfg.ID {
		return outcome{}, &attemptError{err: ErrNoLeader}
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.Timing.Attempt)
	defer cancel()
	return n.proposeAtLeader(ctx, leader, req)
}

// requestIDs makes ids no other node and no other run of this one makes.
type requestIDs struct {
	prefix string
	n      *atomic.Uint64
}

func newRequestIDs(id node.ID) requestIDs {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return requestIDs{prefix: string(id) + "/" + hex.EncodeToString(b[:]) + "/", n: new(atomic.Uint64)}
}

func (i requestIDs) nextID() string { return i.prefix + strconv.FormatUint(i.n.Add(1), 36) }
