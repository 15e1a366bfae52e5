package tokens

import (
	"context"
	"errors"
	"slices"
)

// Ask sends a question to another node's Answer and returns what that says, of at most MaxBody bytes.
type Ask func(ctx context.Context, question []byte) (answer []byte, err error)

// Pull brings this node up to what another one has, and tells how far it is.
//
// A question is a digest. One of all that the asker has is answered with a digest of what it lacks; one that asks for
// an answer (flagAnswer) with the tokens it lists, of which as many as fit come at a time.
func (s *Store) Pull(ctx context.Context, ask Ask, tell func(done, total int)) error {
	if s.off != "" {
		return nil
	}
	select {
	case <-s.looked:
	case <-ctx.Done():
		return ctx.Err()
	}
	m, err := question(ctx, ask, s.digest(false))
	if err != nil {
		return err
	}
	total := len(m.items)
	tell(0, total)
	if err := s.takeAll(m.items, true); err != nil { // revoked ones; what is live comes now
		return err
	}
	want := slices.DeleteFunc(m.items, func(i item) bool { return i.revoked })
	for len(want) > 0 {
		page := want[:min(len(want), maxNews)]
		m, err := question(ctx, ask, message{digest: true, answer: true, items: page})
		if err != nil {
			return err
		}
		if err := s.takeAll(m.items, false); err != nil {
			return err
		}
		want = want[answered(page, m.items):]
		tell(total-len(want), total)
	}
	return nil
}

// answered is how many of a page an answer is about: all up to the last one that came, or, when nothing came, the
// whole page, because all of it is gone.
func answered(page, got []item) int {
	if len(got) == 0 {
		return len(page)
	}
	last := got[len(got)-1].print
	return 1 + max(slices.IndexFunc(page, func(i item) bool { return i.print == last }), 0)
}

func question(ctx context.Context, ask Ask, m message) (message, error) {
	raw, err := ask(ctx, m.encode())
	if err != nil {
		return message{}, err
	}
	return decode(raw)
}

// takeAll brings this node up to items of a peer.
func (s *Store) takeAll(items []item, digest bool) error {
	root, err := s.disk.root()
	if err != nil {
		return err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, i := range items {
		if e, known := s.table.entries[i.print]; !i.revoked && (digest || known && e.revoked) {
			continue // the peer hears of what was revoked with our digest
		}
		what, err := s.accept(root, nil, i, digest)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if err != nil {
			s.fail("accept", err)
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
func (s *Store) Answer(ctx context.Context, body []byte) ([]byte, error) {
	if s.off != "" {
		return message{digest: true}.encode(), nil
	}
	q, err := decode(body)
	switch {
	case err != nil:
		return nil, err
	case !q.digest:
		return nil, errQuestion
	case !s.open():
		return nil, errNotYet
	case !q.answer:
		return s.lacking(q).encode(), nil
	}
	var prints []print
	for _, i := range q.items[:min(len(q.items), maxNews)] {
		prints = append(prints, i.print)
	}
	m, _, err := s.news(prints)
	return m.encode(), err
}

func (s *Store) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scanned && s.run.Err() == nil
}

// lacking is what is here and not in a digest, or live there and revoked here.
func (s *Store) lacking(q message) message {
	live := make(map[print]bool, len(q.items))
	for _, i := range q.items {
		live[i.print] = !i.revoked
	}
	out := message{digest: true}
	for _, i := range s.digest(false).items {
		if alive, told := live[i.print]; !told || alive && i.revoked {
			out.items = append(out.items, i)
		}
	}
	return out
}
