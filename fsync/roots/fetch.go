package roots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// ErrUnavailable says that no member that can be reached has some content.
var ErrUnavailable = errors.New("no member has it")

// Requests of one fetch: how many are under way, and how much each asks for.
const (
	maxFetches = 4
	fetchBytes = 8 << 20
	fetchMost  = 512 // hashes
)

// fetchRoom is how much of an answer is read at a time, in bytes. Each time the peer is told that there is room again,
// which wakes two of its goroutines: with 64 KiB that was half of what it costs to fetch.
const fetchRoom = 256 << 10

// fetch gets content from peers, the author of a revision first. What arrived is kept when a connection breaks: only
// the rest is asked for again, of the next peer. put gets verified content, from several goroutines.
func (s *Store) fetch(ctx context.Context, author node.ID, wants []tree.Chunk, put func(Hash, []byte) error) error {
	peers := s.cfg.Peers.Members()
	slices.SortStableFunc(peers, func(a, b node.ID) int { return btoi(b == author) - btoi(a == author) })
	if len(peers) == 0 {
		return fmt.Errorf("%w: there is no other member", ErrUnavailable)
	}
	q := newQueue(wants, peers, put)
	for range 3 { // a peer may have it a moment later
		s.fetchOnce(ctx, q)
		if err := q.verdict(ctx); err == nil || ctx.Err() != nil || q.failed() {
			return err
		}
		if q.progressed() {
			continue
		}
		break
	}
	return q.verdict(ctx)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fetchOnce asks each peer for what it may have, all at once when there is much.
func (s *Store) fetchOnce(ctx context.Context, q *queue) {
	for i, p := range q.peers {
		var wg sync.WaitGroup
		if q.left() > 2*fetchMost { // more than the first peer needs to be busy with
			for k := range maxFetches {
				peer := q.peers[(i+k)%len(q.peers)]
				wg.Go(func() { s.drain(ctx, q, peer) })
			}
		} else {
			for range 2 {
				wg.Go(func() { s.drain(ctx, q, p) })
			}
		}
		wg.Wait()
		if q.left() == 0 || ctx.Err() != nil || q.failed() {
			return
		}
	}
}

// drain asks one peer until it has nothing more of what is missing. A broken connection is tried once more.
func (s *Store) drain(ctx context.Context, q *queue, peer node.ID) {
	var b buffers
	for broken := 0; broken < 2 && ctx.Err() == nil && !q.failed(); {
		batch := q.take(peer)
		if len(batch) == 0 {
			return
		}
		rest, err := s.ask(ctx, peer, batch, q, &b)
		q.back(peer, rest, err)
		if err != nil {
			broken++
			s.metrics.failures.WithLabelValues("fetch").Inc()
			s.log.Debug("content not fetched", "node", peer, "err", err)
		}
	}
}

// ask sends one request. It returns what the peer has not answered.
func (s *Store) ask(ctx context.Context, peer node.ID, batch []tree.Chunk, q *queue,
	b *buffers) (rest []tree.Chunk, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(s.cfg.Timing.Stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	hashes := make([]Hash, len(batch))
	for i := range batch {
		hashes[i] = batch[i].Hash
	}
	body, err := s.cfg.Peers.Fetch(ctx, peer, encodeRequest(questionWant, hashes))
	if err != nil {
		return batch, err
	}
	defer body.Close()
	stop := context.AfterFunc(ctx, func() { _ = body.Close() })
	defer stop()
	in := bufio.NewReaderSize(body, fetchRoom)
	for {
		f, err := readFrame(in)
		if err != nil {
			return batch, errors.Join(err, context.Cause(ctx))
		}
		watchdog.Reset(s.cfg.Timing.Stall)
		if f.Encoding == encEnd {
			return batch, nil
		}
		if len(batch) == 0 || f.Hash != batch[0].Hash || batch[0].Size != 0 && f.Size != 0 && f.Size != batch[0].Size {
			return batch, fmt.Errorf("%w: not what was asked for", errMalformed)
		}
		if f.Encoding == encMissing {
			q.missing(peer, batch[0])
			batch = batch[1:]
			continue
		}
		content, err := s.pack.read(in, f, b)
		if errors.Is(err, errWrongContent) {
			q.missing(peer, batch[0]) // not from this one
		}
		if err != nil {
			return batch[btoi(errors.Is(err, errWrongContent)):], err
		}
		s.metrics.fetched.Add(float64(len(content)))
		if err := q.put(f.Hash, content); err != nil {
			q.fail(err)
			return nil, err
		}
		q.got(batch[0])
		batch = batch[1:]
	}
}

var errStalled = errors.New("the peer sends nothing")

// whileHead ends a context when a newer revision comes, unless that has been so too often.
func (s *Store) whileHead(ctx context.Context, head Revision) (context.Context, context.CancelFunc) {
	if s.insists() {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	changed := s.cfg.Log.Changed(ctx)
	s.wg.Go(func() {
		for {
			if s.movedOn(head) {
				cancel(errHeadMoved)
			}
			select {
			case <-ctx.Done():
				return
			case _, ok := <-changed:
				if !ok {
					return
				}
			}
		}
	})
	return ctx, func() { cancel(nil) }
}
