package tokens

import (
	"context"
	"errors"
	"slices"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
)

// Catching up: a question is a digest. One of all that the asker has is answered with a digest of what it lacks; one
// that asks for an answer (flagAnswer) with the tokens it lists, of which as many as fit come at a time.

// askOffer lists the live tokens that another node has and this one lacks. It revokes those that are revoked there.
func (s *Store) askOffer(ctx context.Context, ask replica.Ask) (live []fingerprint, got int, err error) {
	m, err := askPeer(ctx, ask, s.digest(false))
	if err == nil {
		err = s.takeAll(m.items, true)
	}
	if err != nil {
		return nil, 0, err
	}
	for _, i := range m.items {
		if !i.revoked {
			live = append(live, i.fingerprint)
		}
	}
	return live, len(m.items) - len(live), nil
}

// fetchPage gets the first n tokens of a page that come with one answer, and writes them.
func (s *Store) fetchPage(ctx context.Context, ask replica.Ask, page []fingerprint) (n int, err error) {
	q := message{digest: true, answer: true}
	for _, p := range page {
		q.items = append(q.items, item{fingerprint: p})
	}
	m, err := askPeer(ctx, ask, q)
	if err == nil {
		err = s.takeAll(m.items, false)
	}
	return countAnswered(page, m.items), err
}

// countAnswered is how many of a page an answer is about: all up to the last one that came, or, when nothing came, the
// whole page, because all of it is gone.
func countAnswered(page []fingerprint, got []item) int {
	if len(got) == 0 {
		return len(page)
	}
	last := got[len(got)-1].fingerprint
	return 1 + max(slices.Index(page, last), 0)
}

func askPeer(ctx context.Context, ask replica.Ask, m message) (message, error) {
	raw, err := ask(ctx, m.encodeMessage())
	if err != nil {
		return message{}, err
	}
	return decodeMessage(raw)
}

// takeAll brings this node up to items of a peer.
func (s *Store) takeAll(items []item, digest bool) error {
	root, err := s.disk.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, i := range items {
		if e, known := s.table.entries[i.fingerprint]; !i.revoked && (digest || known && e.revoked) {
			continue // the peer hears of what was revoked with our digest
		}
		what, err := s.acceptItem(root, nil, i, digest)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if err != nil {
			s.Fail("accept", err)
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 && len(errs) == len(items) {
		return errs[0]
	}
	return nil
}

var errQuestion = errors.New("no question")

// Answer answers another node's Pull.
func (s *Store) Answer(_ context.Context, _ node.ID, body []byte) ([]byte, error) {
	if s.Off() != "" {
		return message{digest: true}.encodeMessage(), nil
	}
	q, err := decodeMessage(body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	err = s.mayAnswer()
	s.mu.Unlock()
	switch {
	case !q.digest:
		return nil, errQuestion
	case err != nil:
		return nil, err
	case !q.answer:
		return s.findLacking(q).encodeMessage(), nil
	}
	var prints []fingerprint
	for _, i := range q.items[:min(len(q.items), maxNews)] {
		prints = append(prints, i.fingerprint)
	}
	m, _, err := s.news(prints)
	return m.encodeMessage(), err
}

// findLacking is what is here and not in a digest, or live there and revoked here.
func (s *Store) findLacking(q message) message {
	live := make(map[fingerprint]bool, len(q.items))
	for _, i := range q.items {
		live[i.fingerprint] = !i.revoked
	}
	out := message{digest: true}
	for _, i := range s.digest(false).items {
		if alive, told := live[i.fingerprint]; !told || alive && i.revoked {
			out.items = append(out.items, i)
		}
	}
	return out
}
