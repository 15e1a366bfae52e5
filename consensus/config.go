package consensus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Proto is the protocol name under which raft asks the Port for connections.
const Proto = "scd-raft/1"

// Port gives authenticated connections between members; gossip/peer has it.
type Port interface {
	Listener(proto string) (net.Listener, error)
	Dial(ctx context.Context, id node.ID, proto string) (net.Conn, error)
}

// Config is what a Node needs. ID, Dir, Port, Forward and Stats are mandatory.
type Config struct {
	ID  node.ID
	Dir string // a directory of its own; created 0700
	// Port carries raft's own traffic.
	Port Port
	// Remote says who is at the other end of a connection of the Port's Listener; nil: that is not known.
	Remote func(c net.Conn) (node.ID, bool)
	// Forward hands req to HandleForward of the leader and returns its answer.
	Forward func(ctx context.Context, leader node.ID, req []byte) ([]byte, error)
	// Stats returns LocalStats of another node.
	Stats func(ctx context.Context, id node.ID) (PeerStats, error)
	// Alive is what gossip thinks; nil means that every node is alive.
	Alive func(id node.ID) bool
	// Tolerance is how long another member waits for a heartbeat of its leader; nil: none is known to wait longer than
	// those of earlier versions.
	Tolerance func(id node.ID) time.Duration
	// Lead, if set, runs while this node leads and must return soon
	// after ctx has ended.
	Lead func(ctx context.Context)
	// Standing, if set, is called when the answer to CaughtUp has changed. It must not block.
	Standing func()

	// Now is the time of the cluster, which decisions are dated with; nil: this host's. A single wrong clock must not
	// date them.
	Now func() time.Time

	// MaxVoters bounds the voting members; further ones stay learners in
	// reserve. Zero means 5.
	MaxVoters int
	// VoterTimeout is how long a voter may be dead before a member in reserve
	// gets its vote. Zero means ten minutes.
	VoterTimeout time.Duration
	// TombstoneAge is how long the deletion of a key is remembered. Zero means
	// 180 days, negative for ever.
	TombstoneAge time.Duration

	storing func() // a test's, before entries are written to the log

	Timing     Timing
	Logger     *slog.Logger          // nil: discard
	Registerer prometheus.Registerer // nil: no metrics
}

// Timing are the clocks of a Node. Zero fields take the value of DefaultTiming.
type Timing struct {
	Heartbeat     time.Duration // raft's heartbeat timeout when a member is silent, see pace.go
	Election      time.Duration // a candidate tries again after 1-2 of these
	IdleHeartbeat time.Duration // raft's heartbeat timeout otherwise; a fifth of it must be well below Lease and Silence
	Silence       time.Duration // a follower without news for 1-1.4 of these stands for election; not below Heartbeat
	Lease         time.Duration // a leader without a majority for this long steps down
	Hang          time.Duration // a leader whose log takes longer than this to be written counts as none
	Commit        time.Duration // after 1-2 of these an idle leader repeats its commit index
	Transport     time.Duration // input/output deadline of raft's connections
	Reconcile     time.Duration // period of the leader's look at roster and configuration
	Stable        time.Duration // a learner must be caught up this long before it votes
	Contact       time.Duration // period of asking the leader how far it is
	Recent        time.Duration // how old such an answer may be for CaughtUp
	Attempt       time.Duration // one try at a leader that does not answer
	Propose       time.Duration // a whole Propose when its context has no deadline
	BoltLock      time.Duration // waiting for another process to let go of the log
	Snapshot      time.Duration // period of looking whether a snapshot is due
	SnapshotLog   uint64        // entries that make a snapshot due
	TrailingLog   uint64        // entries kept behind a snapshot
}

// DefaultTiming returns the timings proven on this shape of cluster: less than raft's defaults for failover, raft's
// defaults for storage.
func DefaultTiming() Timing {
	return Timing{
		Heartbeat: 700 * time.Millisecond, Election: 700 * time.Millisecond, IdleHeartbeat: 2 * time.Second,
		Silence: 750 * time.Millisecond, Lease: 700 * time.Millisecond, Hang: 5 * time.Second,
		Commit:    2 * time.Second,
		Transport: 5 * time.Second, Reconcile: 500 * time.Millisecond, Stable: 2 * time.Second,
		Contact: time.Second, Recent: 3 * time.Second, Attempt: 2 * time.Second,
		Propose: 10 * time.Second, BoltLock: 3 * time.Second,
		Snapshot: 2 * time.Minute, SnapshotLog: 8192, TrailingLog: 10240,
	}
}

func orDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

func (t *Timing) setDefaults() {
	d := DefaultTiming()
	for _, p := range []struct{ v, def *time.Duration }{
		{&t.Heartbeat, &d.Heartbeat}, {&t.Election, &d.Election},
		{&t.IdleHeartbeat, &d.IdleHeartbeat}, {&t.Silence, &d.Silence}, {&t.Lease, &d.Lease}, {&t.Hang, &d.Hang},
		{&t.Commit, &d.Commit}, {&t.Transport, &d.Transport},
		{&t.Reconcile, &d.Reconcile}, {&t.Stable, &d.Stable}, {&t.Contact, &d.Contact},
		{&t.Recent, &d.Recent}, {&t.Attempt, &d.Attempt}, {&t.Propose, &d.Propose}, {&t.BoltLock, &d.BoltLock},
		{&t.Snapshot, &d.Snapshot},
	} {
		orDefault(p.v, *p.def)
	}
	orDefault(&t.SnapshotLog, d.SnapshotLog)
	orDefault(&t.TrailingLog, d.TrailingLog)
}

func (c *Config) setDefaults() error {
	if _, err := node.ParseID(string(c.ID)); err != nil {
		return fmt.Errorf("consensus: %w", err)
	}
	if c.Dir == "" || c.Port == nil || c.Forward == nil || c.Stats == nil {
		return errors.New("consensus: directory, port, forward and stats must be set")
	}
	if c.Remote == nil {
		c.Remote = func(net.Conn) (node.ID, bool) { return "", false }
	}
	if c.Alive == nil {
		c.Alive = func(node.ID) bool { return true }
	}
	if c.Tolerance == nil {
		c.Tolerance = defaultTolerance
	}
	if c.Standing == nil {
		c.Standing = func() {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	orDefault(&c.MaxVoters, 5)
	orDefault(&c.VoterTimeout, 10*time.Minute)
	orDefault(&c.TombstoneAge, 180*24*time.Hour)
	c.Timing.setDefaults()
	return nil
}
