package consensus

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/singleflight"

	"saltclusterd/consensus/state"
)

// Node is one raft node. See the package documentation.
type Node struct {
	cfg   Config
	log   *slog.Logger
	m     *metrics
	state *state.State
	hub   *hub
	fsm   *fsm
	batch *batcher
	ids   requestIDs

	raft    atomic.Pointer[raft.Raft] // set by Open
	store   *storage
	trans   *transport
	notify  chan bool     // leadership won and lost
	repace  chan struct{} // see checkPace
	serving atomic.Bool
	contact contact
	asked   atomic.Uint64 // see nextAsked
	rotate  singleflight.Group

	appliedStored atomic.Uint64 // see storeApplied

	lifetime
}

// lifetime is how long a node works.
type lifetime struct {
	ctx       context.Context // ends with Close or with a failure
	cancel    context.CancelCauseFunc
	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// notifyBuffer is how many leadership changes raft may be ahead of us; it
// blocks beyond that.
const notifyBuffer = 16

// New checks the configuration; it touches nothing.
func New(cfg Config) (*Node, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: cfg.Logger, m: newMetrics(cfg.Registerer), state: state.New(), hub: newHub(),
		notify: make(chan bool, notifyBuffer), repace: make(chan struct{}, 1), ids: newRequestIDs(cfg.ID),
	}
	n.batch = newBatcher(n)
	n.m.registerQueue(cfg.Registerer, n.batch)
	n.ctx, n.cancel = context.WithCancelCause(context.Background())
	n.fsm = &fsm{state: n.state, hub: n.hub, log: n.log, fail: n.stopFailed}
	return n, nil
}

// View returns the state as this node knows it.
func (n *Node) View() state.View { return n.state.View() }

// Now is the time of the cluster, with which decisions are dated.
func (n *Node) Now() time.Time { return n.cfg.Now() }

// Watch returns a channel which gets a value after the state changed; changes
// in quick succession give one. It is closed when ctx or the node ends.
func (n *Node) Watch(ctx context.Context) <-chan struct{} { return n.hub.addWatcher(ctx) }

// Done is closed when the node has ended, by Close or by a failure (see Err).
func (n *Node) Done() <-chan struct{} { return n.ctx.Done() }

// Err is why the node ended on its own; nil while it runs and after Close.
func (n *Node) Err() error {
	if err := context.Cause(n.ctx); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

func (n *Node) isStopped() bool { return n.ctx.Err() != nil }

// stopFailed ends the node: it must not continue with a state it cannot trust, nor lead
// others or vote. The rest is left to Close.
func (n *Node) stopFailed(err error) {
	n.log.Error("consensus stops", "err", err)
	n.cancel(err)
	if r := n.raft.Load(); r != nil {
		r.Shutdown() // does not wait; this may be raft's own goroutine
	}
}

// HasState tells whether this node was ever part of a cluster. Valid after Open.
func (n *Node) HasState() bool {
	r := n.raft.Load()
	return r != nil && (r.LastIndex() > 0 || n.View().Initialized())
}

// Close ends the node and waits for its goroutines. It returns the failure
// that had ended it before, if any.
func (n *Node) Close() error {
	n.closeOnce.Do(func() {
		n.cancel(ErrClosed)
		r := n.raft.Load()
		if r != nil {
			n.batch.waitIdle() // what raft forgets when it ends is never answered
			// The transport goes first: raft waits for its replication
			// goroutines, which may sit in reads from peers that are gone.
			_ = n.trans.Close()
			n.closeErr = r.Shutdown().Error()
			close(n.batch.ended)
		}
		n.wg.Wait()
		if r != nil {
			n.storeApplied()
			n.closeErr = errors.Join(n.closeErr, n.store.close())
		}
		n.hub.close()
		n.closeErr = errors.Join(n.Err(), n.closeErr)
	})
	return n.closeErr
}
