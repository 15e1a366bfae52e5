package returns

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

var (
	errUnreachable = errors.New("returns: the node cannot be reached")
	errNoOwner     = errors.New("returns: no node can take over from one that was removed")
)

// forwardName is the consumer of a journal whose records are kept for another node.
const forwardName = "forward"

// aheadName is the consumer that files such records ahead (ahead.go).
const aheadName = "ahead"

func (s *Service) newKeeper(id node.ID) (*journal, error) {
	var a *ahead
	forward := func(ctx context.Context, batch []spool.Record) (int, error) { return s.forwardBatch(ctx, id, batch) }
	consumers := []spool.Consumer{{Name: forwardName, Consume: forward}}
	if s.c.Ahead {
		a = &ahead{s: s, retryAfter: map[node.ID]time.Time{}}
		// Without Sync: what a power loss takes of it the publisher files, and the disk tells of an error only once, to who
		// has to hear it.
		consumers = append(consumers, spool.Consumer{Name: aheadName, Consume: a.consumeBatch, Optional: true})
	}
	j, err := s.newJournal(toPrefix+string(id), s.c.MaxBytes/4, consumers...)
	if err == nil && a != nil {
		a.j, j.ended = j, a.wg.Wait
	}
	return j, err
}

// forwardBatch hands what was kept for a node to it, or to its successors when it is gone for good. A node that is
// leaving hands it to another one to keep.
func (s *Service) forwardBatch(ctx context.Context, to node.ID, batch []spool.Record) (int, error) {
	switch s.c.Peers.Standing(to) {
	case Reachable:
		return s.sendBatch(ctx, to, batch)
	case Removed:
		return s.adoptBatch(ctx, batch)
	case Unreachable:
		if heir, ok := s.c.Peers.NextKeeper(to); ok {
			return s.sendBatch(ctx, heir, batch)
		}
	}
	return 0, errUnreachable
}

// sendBatch hands over as much of the batch as one message takes.
func (s *Service) sendBatch(ctx context.Context, to node.ID, batch []spool.Record) (int, error) {
	body, n, err := appendBatch(nil, batch)
	if err == nil {
		err = s.c.Peers.Send(ctx, to, body)
	}
	if err != nil {
		return 0, fmt.Errorf("hand returns to %s: %w", to, err)
	}
	s.metrics.add("forwarded", n)
	return n, nil
}

// adoptBatch gives each return to the node that is responsible for its job now.
func (s *Service) adoptBatch(ctx context.Context, batch []spool.Record) (int, error) {
	for i := range batch {
		owner, ok := s.c.Peers.Owner(batch[i].JID)
		var err error
		switch {
		case !ok:
			err = errNoOwner
		case owner == s.c.Self:
			err = s.adoptOne(ctx, batch[i])
		default:
			_, err = s.sendBatch(ctx, owner, batch[i:i+1])
		}
		if err != nil {
			return i, err
		}
	}
	s.metrics.add("adopted", len(batch))
	return len(batch), nil
}

// Kept counts the returns that are kept here for other nodes.
func (s *Service) Kept() uint64 {
	return s.countPending(func(journal, consumer string) bool {
		return strings.HasPrefix(journal, toPrefix) && consumer == forwardName
	})
}

// Deferred counts the returns that wait for the local master's own Python, those put aside not included.
func (s *Service) Deferred() uint64 {
	return s.countPending(func(journal, _ string) bool { return journal == pythonName })
}

// Unfired counts the returns whose events the local master's bus has not taken yet.
func (s *Service) Unfired() uint64 {
	return s.countPending(func(journal, consumer string) bool { return journal == ownName && consumer == eventsName })
}

// Unstored counts the returns of this node's jobs that are only in its journals: their files or events are to be made.
func (s *Service) Unstored() uint64 {
	return s.countPending(func(journal, _ string) bool { return journal == ownName || journal == stuckName })
}

// Aside counts the returns that were put aside.
func (s *Service) Aside() int {
	s.unanswered.mu.Lock()
	defer s.unanswered.mu.Unlock()
	return len(s.unanswered.items)
}

func (s *Service) countPending(of func(journal, consumer string) bool) (n uint64) {
	for _, j := range s.Stats() {
		for _, c := range j.Consumers {
			if of(j.Name, c.Name) {
				n += c.Pending
			}
		}
	}
	return n
}

func (s *Service) adoptOne(ctx context.Context, rec spool.Record) error {
	peek, err := saltwire.PeekLoad(rec.Load)
	if err != nil {
		return s.setAside(rec, err)
	}
	sync := s.stored.newSync()
	if err = s.acceptRecord(ctx, rec, peek.Cmd); errors.Is(err, errKnown) {
		return sync(ctx)
	}
	return err
}
