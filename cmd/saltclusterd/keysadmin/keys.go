package keysadmin

import (
	"context"
	"fmt"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// Log is the consensus log.
type Log interface {
	View() state.View
	// Barrier returns when View shows everything that was decided before the call.
	Barrier(ctx context.Context) error
	Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error)
}

// HeldKeys are the accepted keys that were taken away on this host and were restored.
type HeldKeys interface {
	Held() []string
	Forget(ctx context.Context) ([]string, error) // keeps them and returns them: nothing is held any more
}

// Config is what Keys works with.
type Config struct {
	Self        node.ID
	Log         Log
	Held        HeldKeys                                    // nil on a witness
	HeldChanged func()                                      // nothing is held any more
	AwaitRev    func(ctx context.Context, rev uint64) error // returns when Log.View is at rev or later
	Audit       func(cause string) state.Audit
	LacksQuorum func(error) bool  // whether something was not decided because no majority can be reached
	NoQuorum    func(error) error // makes the error that operators get then
}

// Keys are the minion keys of the cluster, as operators see them on one member.
type Keys struct{ cfg Config }

// New returns Keys.
func New(cfg Config) *Keys { return &Keys{cfg} }

// explainUndecided makes the error for operators when what failed because of err.
func (k *Keys) explainUndecided(what string, err error) error {
	if k.cfg.LacksQuorum(err) {
		return fmt.Errorf("%s: %w", what, k.cfg.NoQuorum(err))
	}
	return err
}
