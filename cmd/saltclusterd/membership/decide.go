package membership

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/adminapi"
)

// decidedWithin is how long the cluster has to decide what an operator wants; without a majority it never does.
const decidedWithin = 10 * time.Second

// Undecided says whether an error means that no majority decided, within decidedWithin of ctx.
func Undecided(ctx context.Context, err error) bool {
	return errors.Is(err, consensus.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
}

// LacksQuorum says whether something was not decided because a majority was missing.
func (m *Member) LacksQuorum(err error) bool {
	return errors.Is(err, consensus.ErrNoLeader) || errors.Is(err, context.DeadlineExceeded) &&
		!m.Consensus.Status().HasQuorum
}

// NoQuorum makes the error that operators get when no majority can decide.
func (m *Member) NoQuorum(err error) error { return m.cfg.NoQuorum(err) }

// Decide proposes a command for an operator. Errors say what an operator can do.
func (m *Member) Decide(ctx context.Context, c state.Command) (state.Result, error) {
	deciding, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	results, err := m.Consensus.Propose(deciding, c)
	if Undecided(ctx, err) {
		return state.Result{}, m.NoQuorum(err)
	}
	if errors.Is(err, consensus.ErrInvalid) {
		return state.Result{}, adminapi.Errorf(adminapi.CodeInvalid, "", "%v", err)
	}
	if err != nil {
		return state.Result{}, fmt.Errorf("%s: %w", c.Type(), err)
	}
	switch r := results[0]; r.Code {
	case state.OK:
		return r, nil
	case state.Invalid:
		return r, adminapi.Errorf(adminapi.CodeInvalid, "", "%s", r.Message)
	case state.NotFound, state.UnknownMember:
		return r, adminapi.Errorf(adminapi.CodeNotFound, "", "%s", r.Message)
	case state.Conflict, state.LimitReached:
		return r, adminapi.Errorf(adminapi.CodeRefused, "", "%s", r.Message)
	default:
		return r, r.Err()
	}
}
