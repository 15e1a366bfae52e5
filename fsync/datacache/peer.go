package datacache

import (
	"context"
	"sync"

	"saltclusterd/fsync/feed"
	"saltclusterd/fsync/replica"
)

// peer sends to one other member. Ids wait for it: the data are read when their turn comes.
type peer struct {
	*replica.Peer[string]
	s     *Store
	wants *feed.Names[string] // whose data we would like from it

	mu      sync.Mutex
	waits   map[string][]chan struct{} // closed when it has what is on disk of an id, or cannot be reached
	sending map[string][]chan struct{} // the same for those being pushed to it
}

func (s *Store) newPeer(p *replica.Peer[string]) *peer {
	return &peer{
		Peer: p, s: s, wants: feed.NewNames[string](maxMissed, p.Wake),
		waits: map[string][]chan struct{}{}, sending: map[string][]chan struct{}{},
	}
}

// maxPending bounds the ids that wait for one peer, or for a look.
const maxPending = 50_000

// First implements feed.Sender: it asks for data that could not be taken when they came.
func (p *peer) First(ctx context.Context) (did bool, err error) {
	ids, _ := p.wants.Take(maxMissed)
	if len(ids) == 0 {
		return false, nil
	}
	if err := p.Push(ctx, encodeDigest(wantDigest(ids))); err != nil {
		p.wants.Add(ids...)
		return true, err
	}
	return true, nil
}

// Failed implements feed.Sender.
func (p *peer) Failed(err error) {
	p.giveUp()
	p.Peer.Failed(err)
}

// batchBytes is about how much goes into one body; a single record may be larger.
const batchBytes = 1 << 20

// Send implements feed.Sender.
func (p *peer) Send(ctx context.Context, ids []string) (rest []string, err error) {
	defer p.sent()
	batch, rest, err := p.s.batch(p, ids)
	if err != nil || len(batch) == 0 {
		return rest, err
	}
	body := encodeRecords(p.s.cfg.Kind, batch)
	if err := p.Push(ctx, body); err != nil {
		return nil, err
	}
	p.s.metrics.sent.Add(float64(len(batch)))
	p.s.metrics.bytes.Add(float64(len(body)))
	return rest, nil
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
