package tokens

import (
	"context"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// peer is the queue towards one other member. It holds prints: the data are read when their turn comes.
type peer struct {
	id     node.ID
	wake   chan struct{} // gets a value when there is something to do
	cancel context.CancelFunc

	mu      sync.Mutex
	queue   map[print]struct{} // bounded by the table
	digests bool               // it should get our digest
	answer  bool               // and send its own
	err     error              // of the last push
}

func newPeer(id node.ID) *peer {
	return &peer{id: id, wake: make(chan struct{}, 1), queue: map[print]struct{}{}}
}

func (p *peer) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// send has the peer hear of tokens. It never blocks.
func (p *peer) send(prints ...print) {
	p.mu.Lock()
	for _, print := range prints {
		p.queue[print] = struct{}{}
	}
	p.mu.Unlock()
	p.signal()
}

// tell makes the peer get our digest; with answer it is asked for its own.
func (p *peer) tell(answer bool) {
	p.mu.Lock()
	p.digests, p.answer = true, p.answer || answer
	p.mu.Unlock()
	p.signal()
}

func (p *peer) takeTell() (due, answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, answer = p.digests, p.answer
	p.digests, p.answer = false, false
	return due, answer
}

func (p *peer) take(n int) (out []print) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for print := range p.queue {
		if len(out) == n {
			break
		}
		out = append(out, print)
		delete(p.queue, print)
	}
	return out
}

func (p *peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *peer) status() PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := PeerStatus{ID: p.id, Pending: len(p.queue)}
	if p.err != nil {
		st.Err = p.err.Error()
	}
	return st
}

// setPeers starts a sender per member, and ends those of members that left.
func (s *Store) setPeers(ctx context.Context) {
	members := s.cfg.Members()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.peers {
		if !slices.Contains(members, id) {
			p.cancel()
			delete(s.peers, id)
		}
	}
	for _, id := range members {
		if s.peers[id] != nil {
			continue
		}
		p := newPeer(id)
		s.peers[id] = p
		run, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		p.tell(true)
		s.wg.Go(func() { s.serve(run, p) })
	}
}

// serve sends what waits for a peer until the peer or the store goes.
func (s *Store) serve(ctx context.Context, p *peer) {
	t := s.cfg.Timing
	digests := time.NewTicker(t.Digest)
	defer digests.Stop()
	select {
	case <-ctx.Done():
		return
	case <-s.ready:
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-digests.C:
			p.tell(false)
		case <-p.wake:
		}
		for retry := t.Retry; ctx.Err() == nil; {
			more, err := s.pushNext(ctx, p)
			p.failed(err)
			if err == nil && !more {
				break
			}
			if err == nil {
				retry = t.Retry
				continue
			}
			s.metrics.failures.WithLabelValues("push").Inc()
			s.log.Debug("tokens not sent", "node", p.id, "err", err)
			pause(ctx, retry)
			retry = min(2*retry, t.RetryMax)
		}
	}
}

// pushNext sends the next that waits. What did not arrive waits on.
func (s *Store) pushNext(ctx context.Context, p *peer) (more bool, err error) {
	if due, answer := p.takeTell(); due {
		if err := s.push(ctx, p, s.digest(answer)); err != nil {
			p.tell(answer)
			return true, err
		}
		return true, nil
	}
	prints := p.take(maxNews)
	if len(prints) == 0 {
		return false, nil
	}
	m, rest, err := s.news(prints)
	if err == nil && len(m.items) > 0 {
		err = s.push(ctx, p, m)
	}
	if err != nil {
		p.send(prints...)
		return true, err
	}
	p.send(rest...)
	return true, nil
}

func (s *Store) push(ctx context.Context, p *peer, m message) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timing.Push)
	defer cancel()
	return s.cfg.Peers.Push(ctx, p.id, m.encode())
}

// digest is the table as a peer hears of it.
func (s *Store) digest(answer bool) message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{digest: true, answer: answer}
	for p, e := range s.table.entries {
		if e.held || e.revoked {
			m.items = append(m.items, item{print: p, expire: e.expire, revoked: e.revoked})
		}
	}
	return m
}

// batchBytes is about how much goes into one body; a single token may have more.
const batchBytes = 1 << 20

// news reads what there is to tell about tokens; rest are those that did not fit.
func (s *Store) news(prints []print) (m message, rest []print, err error) {
	root, err := s.disk.root()
	if err != nil {
		return m, nil, err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for n, p := range prints {
		e, ok := s.table.entries[p]
		i := item{print: p, expire: e.expire, revoked: e.revoked}
		switch {
		case !ok || !e.revoked && (e.token == "" || e.expired(s.cfg.Now())):
			continue
		case !e.revoked:
			data, _, err := s.disk.read(root, e.token)
			if err != nil {
				continue // removed just now, as the scan will find
			}
			i.token, i.data = e.token, data
		}
		if m.items = append(m.items, i); total+len(i.data) > batchBytes {
			return m, prints[n+1:], nil
		}
		total += len(i.data)
	}
	return m, nil, nil
}
