package datacache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"saltclusterd/gossip/node"
)

// record returns what is on disk of a minion, as a record for a peer; false when there is nothing to tell.
func (s *Store) record(root *os.Root, p *peer, id string) (record, bool, error) {
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	p.sends(id)
	files, err := s.observe(root, id, false)
	e, _ := s.entry(id)
	if err == nil && e.Gone {
		return record{id: id, stamp: e.Stamp, key: e.Key}, true, nil
	}
	if err != nil || files == nil {
		return record{}, false, err
	}
	d, err := s.layout.parse(id, files)
	if err != nil {
		return record{}, false, err
	}
	r := record{id: id, stamp: e.told(), key: e.Key, data: d}
	if len(d.pillars) > 0 && d.pillars[0].env == "" && s.cfg.Master.Major < splitSince {
		r.data.pillars[0].env = e.Env
	}
	if n := r.size(); n > maxRecord {
		return record{}, false, fmt.Errorf("%d bytes of data: %w", n, errTooLarge)
	}
	return r, true, nil
}

// Digest implements feed.Sender: it tells a peer all our stamps, in as many bodies as it takes.
func (p *peer) Digest(ctx context.Context, ask bool) error {
	s := p.s
	s.mu.Lock()
	all := make([]stamped, 0, len(s.table))
	for id, e := range s.table {
		all = append(all, stamped{id, e.told()})
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b stamped) int { return strings.Compare(a.id, b.id) })
	for _, d := range splitDigest(all, maxDigest, ask) {
		if err := p.Push(ctx, encodeDigest(d)); err != nil {
			return err
		}
	}
	return nil
}

// splitDigest cuts sorted stamps into digests of up to n that cover all ids without a gap. The last one asks for the
// answer.
func splitDigest(all []stamped, n int, answer bool) []digest {
	var out []digest
	from := ""
	for len(all) > n {
		to := all[n-1].id
		out = append(out, digest{ranged: true, from: from, to: to, stamps: all[:n]})
		all, from = all[n:], to
	}
	return append(out, digest{ranged: true, from: from, stamps: all, answer: answer})
}

// wantDigest says that data of some minions are lacking.
func wantDigest(ids []string) digest {
	var d digest
	for _, id := range ids {
		d.stamps = append(d.stamps, stamped{id: id})
	}
	return d
}

// newer lists the ids of which the table has later stamps than a peer's digest.
func newer(table map[string]entry, d digest) []string {
	var out []string
	told := make(map[string]bool, len(d.stamps))
	for _, st := range d.stamps {
		told[st.id] = true
		if e, ok := table[st.id]; ok && e.told() > st.stamp {
			out = append(out, st.id)
		}
	}
	if !d.ranged {
		return out
	}
	for id := range table {
		if id > d.from && (d.to == "" || id <= d.to) && !told[id] {
			out = append(out, id)
		}
	}
	return out
}

// answer queues for a peer what its digest lacks.
func (s *Store) answer(p *peer, d digest) {
	s.mu.Lock()
	p.Add(newer(s.table, d)...)
	lacking := s.older(d)
	s.mu.Unlock()
	p.hears(d, lacking)
	if d.answer {
		p.Tell(false)
	}
}

// older lists the ids of which a peer's digest has later stamps than the table. s.mu is held.
func (s *Store) older(d digest) (out []string) {
	if !d.ranged {
		return nil
	}
	for _, st := range d.stamps {
		if e, ok := s.table[st.id]; ok && e.Stamp >= st.stamp {
			continue
		}
		if _, ok := s.cfg.Keys.Accepted(st.id); ok {
			out = append(out, st.id)
		}
	}
	return out
}

// hears notes what a peer's digest tells of that is not here. Digests of all a peer has come in order.
func (p *peer) hears(d digest, lacking []string) {
	if !d.ranged {
		return
	}
	p.Lacks(len(d.stamps), lacking...)
	if d.to == "" {
		p.Heard()
	}
}

// wantMissed asks all peers for records that could not be taken when they came, as far as they can be now.
func (s *Store) wantMissed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []string
	for id := range s.missed {
		if _, ok := s.cfg.Keys.Accepted(id); ok {
			ids = append(ids, id)
			delete(s.missed, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	for _, p := range s.Feed().Peers() {
		p.wants.Add(ids...)
	}
}

// errNotYet says that this node does not know the sender as a member yet.
var errNotYet = errors.New("starting")

// handle acts on a message of a peer. A record that cannot be written is asked for again later, and the others are
// still taken.
func (s *Store) handle(from node.ID, m message) (answer []byte, err error) {
	p, known := s.Feed().Alive(from)
	if m.digest != nil {
		if !known {
			return nil, errNotYet
		}
		s.answer(p, *m.digest)
		return nil, nil
	}
	root, err := s.disk.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, r := range m.records {
		what, err := s.accept(root, r)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if err != nil {
			s.fail("accept", r.id, err)
			continue
		}
		s.Feed().Got(r.id) // or it would not be taken
	}
	return nil, nil
}
