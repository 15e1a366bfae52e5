package tokens

import (
	"os"

	"saltclusterd/gossip/node"
)

// handleMessage acts on a message of a peer.
func (s *Store) handleMessage(from node.ID, m message) (answer []byte, err error) {
	root, err := s.disk.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.mayAnswer(); err != nil {
		return nil, err
	}
	p, known := s.Feed().Alive(from)
	if !known {
		return nil, errNotYet
	}
	told := make(map[fingerprint]struct{}, len(m.items))
	for _, i := range m.items {
		told[i.fingerprint] = struct{}{}
		what, err := s.acceptItem(root, p, i, m.digest)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if err != nil {
			s.Fail("accept", err)
		} else if !m.digest {
			s.Feed().Got(i.fingerprint)
		}
	}
	if !m.digest {
		return nil, nil
	}
	for fingerprint := range s.table.entries {
		if _, ok := told[fingerprint]; !ok {
			p.Add(fingerprint)
		}
	}
	p.Heard()
	if m.answer {
		p.Tell(false)
	}
	return nil, nil
}

// outcome is what became of something received.
type outcome string

const (
	written outcome = "written"
	revoked outcome = "revoked"
	same    outcome = "same"
	expired outcome = "expired"
	refused outcome = "refused" // it was revoked, or there are too many
	failed  outcome = "failed"
)

// acceptItem brings this node up to one item of a peer. s.mu is held.
func (s *Store) acceptItem(root *os.Root, from *peer, i item, digest bool) (outcome, error) {
	e, known := s.table.entries[i.fingerprint]
	now := s.cfg.Now()
	if digest && !i.revoked {
		from.Lacks(1)
	}
	switch {
	case entry{expire: i.expire, revoked: i.revoked}.isOver(now):
		return expired, nil
	case i.revoked && e.revoked:
		return same, nil
	case i.revoked:
		return s.revokeItem(root, i, e, known)
	case known && e.revoked:
		from.Add(i.fingerprint) // it has not heard
		return refused, nil
	case digest && known && e.held:
		return same, nil
	case digest:
		from.Lacks(0, i.fingerprint)
		if known { // else it will send the data, once it has our digest
			from.Tell(false)
		}
		return same, nil
	case known && e.held:
		return same, nil
	case !s.hasRoom(i.fingerprint):
		return refused, nil
	}
	if err := s.disk.writeToken(root, i.token, i.data, i.expire); err != nil {
		return failed, err
	}
	if s.table.dir == "" { // the directory was made for it
		s.table.dir = s.disk.id().Text()
	}
	s.setEntry(i.fingerprint, entry{expire: i.expire, held: true, sum: sumOf(i.data), token: i.token})
	return written, nil
}

// revokeItem removes a token that was revoked elsewhere. A file that the disk keeps is removed by a later scan. s.mu is
// held.
func (s *Store) revokeItem(root *os.Root, i item, e entry, known bool) (outcome, error) {
	if !known && !s.makeRoom(root) {
		return refused, nil
	}
	delete(s.gone, i.fingerprint)
	s.setEntry(i.fingerprint, entry{expire: max(i.expire, e.expire), revoked: true})
	if known && e.token != "" {
		if err := s.disk.removeToken(root, e.token); err != nil {
			return failed, err
		}
		s.log.Info("eauth token revoked", "fingerprint", i.fingerprint.short())
	}
	return revoked, nil
}
