package rotation

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
)

// Log is the log that the members agree on (consensus.Node).
type Log interface {
	View() state.View
	Status() consensus.Status
	CaughtUp() bool
	Barrier(ctx context.Context) error
	Watch(ctx context.Context) <-chan struct{}
	Propose(ctx context.Context, cmds ...state.Command) ([]state.Result, error)
	RotateEpoch(
		ctx context.Context, expect uint64, reason string, newKey func() (state.Secret, error),
	) (state.Epoch, error)
}

// Membership is what rotations need of this node's membership.
type Membership struct {
	Self  node.ID
	Log   Log
	Alive func(node.ID) bool // by gossip
	// Decide proposes a command for an operator. Its errors say what to type.
	Decide func(context.Context, state.Command) (state.Result, error)
	// Undecided tells whether an error means that the cluster did not decide in time. NoQuorum turns it into an error
	// for an operator.
	Undecided func(context.Context, error) bool
	NoQuorum  func(error) error
	// Knows returns an error for an operator unless all members understand the commands of a level.
	Knows  func(level uint16) error
	Logger *slog.Logger
}

const (
	// decidedWithin is how long the cluster has to decide; without a majority it never does.
	decidedWithin = 10 * time.Second
	// completedWithin is how long an operator waits until the members have completed a rotation.
	completedWithin = 30 * time.Second
	// pollInterval is the pause between two checks whether they have.
	pollInterval = 100 * time.Millisecond
)

// laterByLog is what happens on a node that is down while a secret in consensus changes.
const laterByLog = "%s is down: it gets the new one from the log when it is back"

// describeDown formats a line for each member that is down.
func (m *Membership) describeDown(format string) []string {
	var out []string
	for _, mem := range m.Log.View().Members() {
		if !m.Alive(mem.ID) {
			out = append(out, fmt.Sprintf(format, mem.ID))
		}
	}
	return out
}

// joinNames lists names for a sentence.
func joinNames(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
