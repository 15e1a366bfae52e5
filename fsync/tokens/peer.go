package tokens

import (
	"context"

	"saltclusterd/fsync/replica"
)

// peer sends to one other member. Prints wait for it: the data are read when their turn comes.
type peer struct {
	*replica.Peer[fingerprint]
	s *Store
}

// Digest implements feed.Sender.
func (p *peer) Digest(ctx context.Context, ask bool) error {
	return p.Push(ctx, p.s.digest(ask).encodeMessage())
}

// Send implements feed.Sender.
func (p *peer) Send(ctx context.Context, prints []fingerprint) (rest []fingerprint, err error) {
	m, rest, err := p.s.news(prints)
	if err == nil && len(m.items) > 0 {
		err = p.Push(ctx, m.encodeMessage())
	}
	return rest, err
}

// digest is the table as a peer hears of it.
func (s *Store) digest(answer bool) message {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := message{digest: true, answer: answer}
	for p, e := range s.table.entries {
		if e.held || e.revoked {
			m.items = append(m.items, item{fingerprint: p, expire: e.expire, revoked: e.revoked})
		}
	}
	return m
}

// batchBytes is about how much goes into one body; a single token may have more.
const batchBytes = 1 << 20

// news reads what there is to tell about tokens; rest are those that did not fit.
func (s *Store) news(prints []fingerprint) (m message, rest []fingerprint, err error) {
	root, err := s.disk.openRoot()
	if err != nil {
		return m, nil, err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for n, p := range prints {
		e, ok := s.table.entries[p]
		i := item{fingerprint: p, expire: e.expire, revoked: e.revoked}
		switch {
		case !ok || !e.revoked && (e.token == "" || e.isExpired(s.cfg.Now())):
			continue
		case !e.revoked:
			data, _, err := s.disk.readToken(root, e.token)
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
