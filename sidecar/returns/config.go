package returns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/spool"
)

// Why a return was not taken. What the journal says (spool.ErrFull, the disk's errors) is passed on.
var (
	// ErrPython: only the master itself can take it.
	ErrPython = errors.New("returns: only the salt-master itself can take it")
	// ErrMalformed: it is not a return that any master takes.
	ErrMalformed = errors.New("returns: malformed")
	// ErrUnknown: nothing here says that a minion has published that job.
	ErrUnknown = jobcache.ErrUnknown
	// ErrGone is Python's answer for a load that no master will take any more: the minion's key was removed.
	ErrGone = errors.New("returns: the minion is not accepted any more")
	// ErrRefused is Python's answer for a load that the master refused now.
	ErrRefused = errors.New("returns: the salt-master refuses the load")
	// ErrNotAsked is Python's answer when the master has not got the load: that says nothing about it.
	ErrNotAsked = errors.New("returns: the salt-master was not asked")
)

// Standing is what this node knows of another.
type Standing uint8

// The standings.
const (
	Unknown     Standing = iota // this node cannot tell now
	Removed                     // no member of the cluster
	Unreachable                 // a member that cannot be reached
	Reachable                   // a member that takes batches
)

// Peers are the other nodes.
type Peers interface {
	Standing(id node.ID) Standing
	// Owner is the node responsible for a job whose publisher is gone.
	Owner(jid string) (node.ID, bool)
	// Copiers are the nodes that file what is kept for a job's publisher ahead: those that shall have copies of the job,
	// can be reached and take returns without Python, this one first.
	Copiers(jid string) []node.ID
	// Keepers are the nodes that can be reached and have journals, in the order in which they are asked to keep a return
	// of a job.
	Keepers(jid string) []node.ID
	// NextKeeper is who keeps what is kept here for another node when this one is leaving; false: it stays here.
	NextKeeper(kept node.ID) (node.ID, bool)
	// Successor is the node responsible for a job once this one has left the cluster.
	Successor(jid string) (node.ID, bool)
	// Send hands a batch to Handler of another node and returns when that has it on disk.
	Send(ctx context.Context, to node.ID, batch []byte) error
}

// Python is the local master's own way to take a return.
type Python struct {
	Up func() bool // whether the master answers
	// Return hands the load of a minion to the master and returns when it has answered. Errors: ErrGone, when there is no
	// use in trying again, ErrRefused, ErrNotAsked, and why the master has not answered; context.DeadlineExceeded when it
	// took too long.
	Return func(ctx context.Context, minion string, load []byte) error
}

// Config configures a Service. Zero values take the defaults named.
type Config struct {
	Self     node.ID
	Dir      string // of the journals, created 0700
	MaxBytes int64  // of the journal of this node's own returns (1 GiB); every other one has a quarter of it

	Mode   Mode // to begin with
	Bus    jobcache.Bus
	Python Python
	Peers  Peers

	// Ahead: what is kept for another node is filed meanwhile where the job has copies, so that it is whole for who looks
	// it up.
	Ahead bool
	// Contested says whether two masters gave an id to different jobs: what is kept of one must not be filed with the
	// other's. nil: never.
	Contested func(jid string) bool
	// KeepForPython: what needs Python may be acknowledged and given to the master later; nil: never.
	KeepForPython func() bool
	// HoldBack is how long after its publication a job's first events are fired; Published tells when that was.
	HoldBack  time.Duration
	Published func(jid string) (time.Time, bool)
	// Behind is how many events a subscriber of the master's bus may be behind before the master cuts it; 0: any number.
	Behind int

	Logger     *slog.Logger
	Registerer prometheus.Registerer

	disk spool.Disk    // of the journals, in tests
	hang time.Duration // see spool.Config
}

func (c *Config) setDefaults() error {
	if c.Dir == "" || c.Bus == nil || c.Python.Up == nil || c.Python.Return == nil || c.Peers == nil {
		return fmt.Errorf("returns: incomplete configuration")
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, 1<<30)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Request is a return as it came in.
type Request struct {
	Cmd, JID, Minion string
	Load             []byte // the plaintext; not changed, not kept
	Received         time.Time
	From             node.ID // the node that relayed it; empty: it came in here
}
