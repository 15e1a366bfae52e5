package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/signin"
)

// A member that restarts while no majority can be found serves its minions with what it knew when it ended, like one that
// kept running: sign-ins of accepted minions, requests, publications. Key files stay as they are, new keys stay pending,
// and the health check "consensus" fails, so that a load balancer prefers other nodes, until the cluster is found again.
// Either serves no longer than cluster_alone_limit after its last contact.

const (
	catchUpPoll = 50 * time.Millisecond
	// aloneAfter is how long a majority is looked for; elections take about a second.
	aloneAfter = 10 * time.Second
	// aloneAgain is the pause before it is looked once more whether this node may serve alone.
	aloneAgain = 5 * time.Second
)

// awaitCluster waits until this node knows what the cluster has decided, or that nobody can tell.
func (s *service) awaitCluster(ctx context.Context) error {
	m := s.m
	m.log.Info("waiting for consensus", "node", m.d.id)
	for patience := time.Now().Add(m.d.aloneAfter); !m.cons.CaughtUp(); {
		if time.Now().After(patience) {
			ok := m.d.mayBeAlone(time.Now(), time.Time{})
			if !ok {
				s.step.Store("finding a majority of the cluster again: without one this node serves no longer than cluster_alone_limit")
			}
			if ok && m.mayServeAlone(ctx) {
				s.alone.Store(true)
				m.log.Warn("no majority of the cluster can be reached: serving with what this node knew", "index", m.cons.View().Rev())
				return nil
			}
			patience = time.Now().Add(aloneAgain)
		}
		if !backoff.Sleep(ctx, catchUpPoll) {
			return ctx.Err()
		}
	}
	return nil
}

// limitAlone stops serving when this node has not been caught up with a majority for cluster_alone_limit, whether it has
// restarted in the meantime or not: what it does not know by then may be the removal of this node, or of a key. The
// member begins anew, and waits.
func (s *service) limitAlone(ctx context.Context) {
	var contact time.Time
	for backoff.Sleep(ctx, aloneAgain) {
		now := time.Now()
		if s.m.cons.CaughtUp() {
			contact = now
			continue
		}
		if s.m.arriving() || s.m.d.mayBeAlone(now, contact) {
			continue
		}
		s.m.log.Warn("no majority of the cluster was found for too long: this node stops serving minions", "dur", s.m.d.cfg.Cluster.AloneLimit)
		s.m.fail(&ending{"serving alone is over", func() error { return nil }})
		return
	}
}

// findBackIfAlone ends serving alone if this node began so.
func (s *service) findBackIfAlone(ctx context.Context) {
	if s.alone.Load() {
		s.findBack(ctx)
	}
}

// findBack ends serving alone when the cluster is there again and the key files are as it says.
func (s *service) findBack(ctx context.Context) {
	for !s.m.cons.CaughtUp() {
		if !backoff.Sleep(ctx, catchUpPoll) {
			return
		}
	}
	if err := s.dir.WaitSynced(ctx, s.m.cons.View().Rev()); err != nil {
		return // closing
	}
	s.alone.Store(false)
	s.m.log.Info("the cluster is found again", "node", s.m.d.id)
}

// mayServeAlone says whether this node knows enough, no leader speaks to it, and no member turns it away: the others
// may have removed it while it was down.
func (m *member) mayServeAlone(ctx context.Context) bool {
	v := m.cons.View()
	_, member := v.Member(m.d.id)
	if !member || v.Epochs().Current.N == 0 || m.cons.Status().HasQuorum {
		return false
	}
	var refused atomic.Bool
	var wg sync.WaitGroup
	for _, mem := range v.Members() {
		if mem.ID != m.d.id {
			wg.Go(func() {
				if m.turnedAwayBy(ctx, mem.ID) {
					refused.Store(true)
				}
			})
		}
	}
	wg.Wait()
	return !refused.Load()
}

// turnedAwayBy says whether a member can be reached and does not let this node in.
func (m *member) turnedAwayBy(ctx context.Context, id node.ID) bool {
	c, err := m.port.Dial(ctx, id, peer.ProtoRaft) // which says whether it admits us; bounded by the port
	if err == nil {
		_ = peer.Cut(c)
		return false
	}
	var op *net.OpError
	unreachable := errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded)
	if unreachable || errors.Is(err, peer.ErrBusy) {
		return false
	}
	m.log.Warn("a member does not let this node in", "node", id, "err", err)
	return true
}

// keysSettled waits until key files are as new as rev.
func (s *service) keysSettled(ctx context.Context, rev uint64) error {
	if s.alone.Load() {
		return fmt.Errorf("%w: the key directory waits for the cluster", signin.ErrNoQuorum)
	}
	return s.dir.WaitSynced(ctx, rev)
}

// keysSynced says whether there is nothing to wait for: alone, nothing newer will come.
func (s *service) keysSynced(rev uint64) bool { return s.alone.Load() || s.dir.Synced(rev) }
