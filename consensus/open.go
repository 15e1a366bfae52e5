package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/gossip/node"
)

// Open reads the disk, replays what is there and starts the node. ctx bounds
// nothing beyond that; the node lives until Close or a failure. An opened node
// without state waits to be bootstrapped or to be added by a leader.
func (n *Node) Open(ctx context.Context) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if n.isStopped() || n.raft.Load() != nil {
		return fmt.Errorf("open consensus: %w", ErrClosed)
	}
	hlog := hcLogger{log: n.log}
	store, err := openStorage(n.cfg.Dir, n.cfg.Timing.BoltLock, hlog)
	if err != nil {
		return fmt.Errorf("open consensus: %w", err)
	}
	ln, err := n.cfg.Port.Listener(Proto)
	if err != nil {
		return errors.Join(fmt.Errorf("open consensus: %w", err), store.close())
	}
	store.watched.storing, store.watched.limit = n.cfg.storing, n.cfg.Timing.Hang
	trans := n.newTransport(ln, store.watched.hangs, hlog)
	votes := retryingStore{store.bolt, n.ctx, n.log, &store.watched.votes}
	r, err := raft.NewRaft(n.raftConfig(hlog), n.fsm, store.logs, votes, store.snaps, trans)
	if err != nil {
		err = errors.Join(fmt.Errorf("start raft: %w", err), n.fsm.stopError())
		return errors.Join(err, trans.Close(), store.close())
	}
	n.store, n.trans = store, trans
	n.raft.Store(r)
	n.fsm.endPreload()
	if err := n.restoreState(); err != nil {
		return errors.Join(fmt.Errorf("open consensus: %w", err), n.Close())
	}
	n.wg.Go(func() { n.keepApplied(n.ctx) })
	n.wg.Go(func() { n.batch.run(n.ctx, r, n.m) })
	n.wg.Go(func() { n.runTerms(n.ctx, r) })
	n.wg.Go(func() { n.keepContact(n.ctx, r) })
	n.wg.Go(func() { n.keepPace(n.ctx, r) })
	n.log.Info("consensus open", "node", n.cfg.ID, "term", r.CurrentTerm(), "index", r.LastIndex())
	return nil
}

func (n *Node) newTransport(ln net.Listener, hangs func() bool, hlog hcLogger) *transport {
	stream := newStream(n.cfg.Port, n.cfg.ID, false)
	return &transport{
		n.newOutbound(stream, n.cfg.Timing.Transport, hlog),
		n.newOutbound(stream, min(2*n.cfg.Timing.Heartbeat, n.cfg.Timing.Transport), hlog),
		n.newOutbound(newStream(n.cfg.Port, n.cfg.ID, true), n.cfg.Timing.Transport, hlog),
		newReach(n.replicatesTo, n.checkPace),
		hangs,
		newInbound(inboundConfig{
			ln: ln, remote: n.cfg.Remote, position: n.logPosition, dir: n.cfg.Dir, timeout: 2 * n.cfg.Timing.Transport,
			log: n.log,
			m:   n.m,
		}),
	}
}

func (n *Node) newOutbound(stream *stream, timeout time.Duration, hlog hcLogger) *raft.NetworkTransport {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:  stream,
		MaxPool: maxPool,
		Timeout: timeout,
		// No pipeline: raft's own can deadlock. When a follower refuses entries, its decoder ends; the sender, with another
		// request on its way, then waits for it for ever, the follower gets nothing more, and Shutdown does not return.
		MaxRPCsInFlight:         1,
		Logger:                  hlog,
		MsgpackUseNewTimeFormat: true,
	})
}

// logPosition is where this node is. What others say is compared with it (validateRPC).
func (n *Node) logPosition() position {
	r := n.raft.Load()
	if r == nil {
		return position{}
	}
	_, leader := r.LeaderWithID()
	return position{term: r.CurrentTerm(), last: r.LastIndex(), applied: r.AppliedIndex(), leader: node.ID(leader)}
}

func (n *Node) raftConfig(hlog hcLogger) *raft.Config {
	t := n.cfg.Timing
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(n.cfg.ID)
	c.HeartbeatTimeout, c.ElectionTimeout = t.Heartbeat, t.Election
	c.LeaderLeaseTimeout, c.CommitTimeout = t.Lease, t.Commit
	c.MaxAppendEntries = maxAppend
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.Snapshot, t.SnapshotLog, t.TrailingLog
	c.NotifyCh = n.notify
	// It would act in a leader's loop only; a removed node finds out on its own.
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.Logger = hlog
	return c
}

// runningRaft returns raft, or ErrClosed.
func (n *Node) runningRaft() (*raft.Raft, error) {
	r := n.raft.Load()
	if r == nil || n.isStopped() {
		return nil, errors.Join(ErrClosed, n.Err())
	}
	return r, nil
}
