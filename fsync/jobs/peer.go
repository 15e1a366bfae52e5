package jobs

import (
	"context"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// Bounds of the queue towards a peer. What does not fit makes its job dirty, and too many dirty jobs are all jobs.
const (
	maxQueueBytes = 32 << 20
	maxDirty      = 10_000
	batchBytes    = 1 << 20
	batchRecords  = 2_048
)

// peer is the queue towards one other member.
type peer struct {
	id     node.ID
	wake   chan struct{}
	cancel context.CancelFunc

	mu     sync.Mutex
	queue  []*record
	bytes  int
	dirty  map[string]struct{}
	all    bool // every job is to be compared
	answer bool // and the peer to compare its own
	off    bool // it keeps no jobs of others
	err    error
}

func newPeer(id node.ID) *peer {
	return &peer{id: id, wake: make(chan struct{}, 1), dirty: map[string]struct{}{}}
}

func (p *peer) ring() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// enqueue sends a record soon, or makes its job dirty.
func (p *peer) enqueue(r *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.off:
		return
	case p.err != nil || p.bytes+r.weight() > maxQueueBytes:
		p.soilLocked(r.jid)
	default:
		p.queue = append(p.queue, r)
		p.bytes += r.weight()
	}
	p.ring()
}

// soil makes a job be compared.
func (p *peer) soil(jids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, jid := range jids {
		p.soilLocked(jid)
	}
	p.ring()
}

func (p *peer) soilLocked(jid string) {
	if p.all || p.off {
		return
	}
	if p.dirty[jid] = struct{}{}; len(p.dirty) > maxDirty {
		clear(p.dirty)
		p.all = true
	}
}

// compareAll makes every job be compared; with answer the peer shall do the same.
func (p *peer) compareAll(answer bool) {
	p.mu.Lock()
	p.all, p.answer = true, p.answer || answer
	clear(p.dirty)
	p.mu.Unlock()
	p.ring()
}

// take returns the next batch of records.
func (p *peer) take() (batch []*record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := 0
	for size < batchBytes && len(batch) < len(p.queue) && len(batch) < batchRecords {
		size += p.queue[len(batch)].weight()
		batch = p.queue[:len(batch)+1]
	}
	p.queue = p.queue[len(batch):]
	p.bytes -= size
	if len(p.queue) == 0 {
		p.queue, p.bytes = nil, 0
	}
	return batch
}

// takeDirty returns the jobs to compare; all says that it is all of them.
func (p *peer) takeDirty() (jids []string, all, answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all {
		answer = p.answer
		p.all, p.answer = false, false
		return nil, true, answer
	}
	for jid := range p.dirty {
		if jids = append(jids, jid); len(jids) == maxDigest {
			break
		}
	}
	for _, jid := range jids {
		delete(p.dirty, jid)
	}
	return jids, false, false
}

// failed notes how the last call went. What waits becomes dirty: the peer may be away for long.
func (p *peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err = err; err == nil {
		return
	}
	for _, r := range p.queue {
		p.soilLocked(r.jid)
	}
	p.queue, p.bytes = nil, 0
}

func (p *peer) setOff(off bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.off = off; off {
		p.queue, p.bytes = nil, 0
		clear(p.dirty)
	}
}

// setPeers starts a sender per member, and ends those of members that left. When the members are others, so are the
// replicas.
func (s *Store) setPeers(ctx context.Context) {
	members := s.cfg.Members()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last.jid, s.last.peers = "", nil
	changed := false
	for id, p := range s.peers {
		if !slices.Contains(members, id) {
			p.cancel()
			delete(s.peers, id)
			changed = true
		}
	}
	for _, id := range members {
		if s.peers[id] != nil || id == s.cfg.Self {
			continue
		}
		p := newPeer(id)
		s.peers[id] = p
		run, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		p.compareAll(true)
		s.wg.Go(func() { s.serve(run, p) })
		changed = true
	}
	if changed {
		for _, p := range s.peers {
			p.compareAll(false)
		}
	}
}

// serve sends what a peer shall have until it or the store goes.
func (s *Store) serve(ctx context.Context, p *peer) {
	t := s.cfg.Timing
	everything := time.NewTicker(t.Digest)
	defer everything.Stop()
	select {
	case <-ctx.Done():
		return
	case <-s.ready:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-everything.C:
			p.compareAll(false)
		case <-p.wake:
			pause(ctx, t.Linger)
		}
		for retry := t.Retry; ctx.Err() == nil; {
			more, err := s.sendNext(ctx, p)
			p.failed(err)
			switch {
			case err == nil && more:
				retry = t.Retry
				continue
			case err == nil:
			default:
				s.metrics.failures.WithLabelValues("send").Inc()
				s.cfg.Logger.Debug("jobs not sent", "node", p.id, "err", err)
				pause(ctx, retry)
				retry = min(2*retry, t.RetryMax)
				continue
			}
			break
		}
	}
}

// sendNext sends the next that waits. What did not arrive is dirty.
func (s *Store) sendNext(ctx context.Context, p *peer) (more bool, err error) {
	if batch := p.take(); len(batch) > 0 {
		if err := s.sendRecords(ctx, p, batch); err != nil {
			for _, r := range batch {
				p.soil(r.jid)
			}
			return true, err
		}
		return true, nil
	}
	jids, all, answer := p.takeDirty()
	switch {
	case all:
		if err := s.compareAll(ctx, p, answer); err != nil {
			p.compareAll(answer)
			return true, err
		}
		return true, nil
	case len(jids) > 0:
		if err := s.compare(ctx, p, jids, false); err != nil {
			p.soil(jids...)
			return true, err
		}
		return true, nil
	}
	return false, nil
}
