package content

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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

// Fetch gets content from peers, the one named first before the others. What arrived is kept when a connection breaks:
// only the rest is asked for again, of the next peer. put gets verified content, from several goroutines.
func (t *Transfer) Fetch(ctx context.Context, first node.ID, wants []tree.Chunk, put func(Hash, []byte) error) error {
	peers := t.c.Peers.Members()
	slices.SortStableFunc(peers, func(a, b node.ID) int { return btoi(b == first) - btoi(a == first) })
	if len(peers) == 0 {
		return fmt.Errorf("%w: there is no other member", ErrUnavailable)
	}
	q := newQueue(wants, peers, put)
	for range 3 { // a peer may have it a moment later
		t.fetchOnce(ctx, q)
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
func (t *Transfer) fetchOnce(ctx context.Context, q *queue) {
	for i, p := range q.peers {
		var wg sync.WaitGroup
		if q.countLeft() > 2*fetchMost { // more than the first peer needs to be busy with
			for k := range maxFetches {
				peer := q.peers[(i+k)%len(q.peers)]
				wg.Go(func() { t.drainPeer(ctx, q, peer) })
			}
		} else {
			for range 2 {
				wg.Go(func() { t.drainPeer(ctx, q, p) })
			}
		}
		wg.Wait()
		if q.countLeft() == 0 || ctx.Err() != nil || q.failed() {
			return
		}
	}
}

// drainPeer asks one peer until it has nothing more of what is missing. A broken connection is tried once more.
func (t *Transfer) drainPeer(ctx context.Context, q *queue, peer node.ID) {
	var b buffers
	for broken := 0; broken < 2 && ctx.Err() == nil && !q.failed(); {
		batch := q.takeBatch(peer)
		if len(batch) == 0 {
			return
		}
		rest, err := t.askContent(ctx, peer, batch, q, &b)
		q.returnBatch(peer, rest, err)
		if err != nil {
			broken++
			t.c.Failed.Inc()
			t.c.Logger.Debug("content not fetched", "node", peer, "err", err)
		}
	}
}

// askContent sends one request. It returns what the peer has not answered.
func (t *Transfer) askContent(ctx context.Context, peer node.ID, batch []tree.Chunk, q *queue,
	b *buffers) (rest []tree.Chunk, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(t.c.Stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	hashes := make([]Hash, len(batch))
	for i := range batch {
		hashes[i] = batch[i].Hash
	}
	body, err := t.c.Peers.Fetch(ctx, peer, encodeRequest(questionWant, hashes))
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
		watchdog.Reset(t.c.Stall)
		if f.Encoding == encEnd {
			return batch, nil
		}
		if len(batch) == 0 || f.Hash != batch[0].Hash || batch[0].Size != 0 && f.Size != 0 && f.Size != batch[0].Size {
			return batch, fmt.Errorf("%w: not what was asked for", errMalformed)
		}
		if f.Encoding == encMissing {
			q.noteMissing(peer, batch[0])
			batch = batch[1:]
			continue
		}
		content, err := t.pack.readContent(in, f, b)
		if errors.Is(err, errWrongContent) {
			q.noteMissing(peer, batch[0]) // not from this one
		}
		if err != nil {
			return batch[btoi(errors.Is(err, errWrongContent)):], err
		}
		t.c.Fetched.Add(float64(len(content)))
		if err := q.put(f.Hash, content); err != nil {
			q.fail(err)
			return nil, err
		}
		q.noteArrived(batch[0])
		batch = batch[1:]
	}
}

// Have calls found with each of the hashes that a peer has.
func (t *Transfer) Have(ctx context.Context, peer node.ID, hashes []Hash, found func(Hash)) error {
	for batch := range slices.Chunk(hashes, maxHashes) {
		answer, err := t.askShort(ctx, peer, encodeRequest(questionHave, batch), len(batch))
		if err != nil {
			return err
		}
		for i, has := range answer {
			if has == 1 {
				found(batch[i])
			}
		}
	}
	return nil
}

// Live returns the root of what is live on a peer; zero when it has not looked yet.
func (t *Transfer) Live(ctx context.Context, peer node.ID) (Hash, error) {
	answer, err := t.askShort(ctx, peer, encodeRequest(questionLive, nil), len(Hash{}))
	if err != nil {
		return Hash{}, err
	}
	return Hash(answer), nil
}

// askShort sends a question and reads an answer of n bytes.
func (t *Transfer) askShort(ctx context.Context, peer node.ID, body []byte, n int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, t.c.Stall)
	defer cancel()
	in, err := t.c.Peers.Fetch(ctx, peer, body)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	out := make([]byte, n)
	if _, err := io.ReadFull(in, out); err != nil {
		return nil, fmt.Errorf("%w: %w", errMalformed, err)
	}
	return out, nil
}

var errStalled = errors.New("the peer sends nothing")
