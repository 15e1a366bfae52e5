package datacache

import (
	"context"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// peer is the queue towards one other member. It holds ids: the data are read when their turn comes.
type peer struct {
	id     node.ID
	queue  *idSet // whose data it should get
	wants  *idSet // whose data we would like from it
	wake   chan struct{}
	cancel context.CancelFunc

	mu      sync.Mutex
	digests bool // it should get our digest
	answer  bool // and send its own
	err     error
	waits   map[string][]chan struct{} // closed when it has what is on disk of an id, or cannot be reached
	sending map[string][]chan struct{} // the same for those being pushed to it
}

func newPeer(id node.ID) *peer {
	p := &peer{
		id: id, queue: newIDSet(maxPending), wants: newIDSet(maxMissed), wake: make(chan struct{}, 1),
		waits: map[string][]chan struct{}{}, sending: map[string][]chan struct{}{},
	}
	p.queue.wake, p.wants.wake = p.wake, p.wake
	return p
}

func (p *peer) send(ids ...string) { p.queue.add(ids...) }

// tell makes the peer get our digest; with answer it is asked for its own.
func (p *peer) tell(answer bool) {
	p.mu.Lock()
	p.digests, p.answer = true, p.answer || answer
	p.mu.Unlock()
	signal(p.wake)
}

func (p *peer) takeTell() (due, answer bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	due, answer = p.digests, p.answer
	p.digests, p.answer = false, false
	return due, answer
}

func (p *peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
}

func (p *peer) status() PeerStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	st := PeerStatus{ID: p.id, Pending: p.queue.size()}
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
			s.log.Debug("minion data not sent", "node", p.id, "err", err)
			pause(ctx, retry)
			retry = min(2*retry, t.RetryMax)
		}
	}
}

// pushNext sends the next that waits. What did not arrive waits on.
func (s *Store) pushNext(ctx context.Context, p *peer) (more bool, err error) {
	if due, answer := p.takeTell(); due {
		if err := s.pushDigest(ctx, p, answer); err != nil {
			p.tell(answer)
			return true, err
		}
		return true, nil
	}
	if ids, _ := p.wants.take(maxMissed); len(ids) > 0 {
		if err := s.push(ctx, p, encodeDigest(wantDigest(ids))); err != nil {
			p.wants.add(ids...)
			return true, err
		}
		return true, nil
	}
	ids, whole := p.queue.take(maxRecords)
	if !whole {
		p.tell(true) // its digest tells what else it lacks
	}
	if len(ids) == 0 {
		return false, nil
	}
	return true, s.pushRecords(ctx, p, ids)
}

// batchBytes is about how much goes into one body; a single record may be larger.
const batchBytes = 1 << 20

func (s *Store) pushRecords(ctx context.Context, p *peer, ids []string) error {
	defer p.sent()
	batch, rest, err := s.batch(p, ids)
	if err != nil {
		p.send(ids...)
		return err
	}
	if len(rest) > 0 {
		p.send(rest...)
	}
	if len(batch) == 0 {
		return nil
	}
	body := encodeRecords(s.cfg.Kind, batch)
	if err := s.push(ctx, p, body); err != nil {
		p.send(ids...)
		return err
	}
	s.metrics.sent.Add(float64(len(batch)))
	s.metrics.bytes.Add(float64(len(body)))
	return nil
}

func (s *Store) push(ctx context.Context, p *peer, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timing.Push)
	defer cancel()
	return s.cfg.Peers.Push(ctx, p.id, body)
}

// batch reads the records of ids for a peer as they are now, up to a size; rest are those that did not fit.
func (s *Store) batch(p *peer, ids []string) (batch []record, rest []string, err error) {
	root, err := s.disk.root()
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	total := 0
	for i, id := range ids {
		r, ok, err := s.record(root, p, id)
		if err != nil {
			s.fail("read", id, err) // the next scan tries again
			continue
		}
		if !ok {
			continue
		}
		size := r.size()
		if len(batch) > 0 && total+size > batchBytes {
			p.sendsLater(id)
			return batch, ids[i:], nil
		}
		batch, total = append(batch, r), total+size
	}
	return batch, nil, nil
}

// size is about what a record takes in a body.
func (r record) size() int {
	n := len(r.data.main) + 512
	for _, p := range r.data.pillars {
		n += len(p.raw) + 128
	}
	return n
}

// maxRecord bounds a record, so that a body has room for it.
const maxRecord = MaxBody - (1 << 20)
