package datacache

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
)

// Catching up: a question is a digest. One with a range is answered with the stamps of what the asker lacks in that
// range; the answer's range ends where it was cut. One without is answered with records, of as many ids from the first
// on as fit.

// askOffer asks for the ids of which the other node has later data.
func (s *Store) askOffer(ctx context.Context, ask replica.Ask) (ids []string, got int, err error) {
	for from := ""; ; {
		q := s.digestFrom(from, maxDigest)
		raw, err := ask(ctx, encodeDigest(q))
		if err != nil {
			return nil, 0, err
		}
		m, err := decode(s.cfg.Kind, raw)
		if err != nil {
			return nil, 0, err
		}
		if m.digest == nil || !m.digest.ranged || m.digest.to != "" && m.digest.to <= from {
			return nil, 0, errWire
		}
		for _, st := range m.digest.stamps {
			ids = append(ids, st.id)
		}
		if m.digest.to == "" || len(ids) > maxPending {
			return ids, 0, nil // who has more tells of it later, as always
		}
		from = m.digest.to
	}
}

// digestFrom is the first n ids of the table after one.
func (s *Store) digestFrom(from string, n int) digest {
	s.mu.Lock()
	var all []stamped
	for id, e := range s.table {
		if id > from {
			all = append(all, stamped{id, e.told()})
		}
	}
	s.mu.Unlock()
	sortStamps(all)
	d := digest{ranged: true, from: from, stamps: all}
	if len(all) > n {
		d.stamps, d.to = all[:n], all[n-1].id
	}
	return d
}

func sortStamps(all []stamped) {
	slices.SortFunc(all, func(a, b stamped) int { return strings.Compare(a.id, b.id) })
}

// fetch gets the records of the first n ids that come with one answer, and writes them.
func (s *Store) fetch(ctx context.Context, ask replica.Ask, ids []string) (n int, err error) {
	raw, err := ask(ctx, encodeDigest(wantDigest(ids)))
	if err != nil {
		return 0, err
	}
	m, err := decode(s.cfg.Kind, raw)
	if err != nil {
		return 0, err
	}
	if m.digest != nil {
		return 0, errWire
	}
	if len(m.records) == 0 {
		return len(ids), nil // gone meanwhile, all of them
	}
	last := slices.Index(ids, m.records[len(m.records)-1].id)
	if last < 0 {
		return 0, errWire
	}
	return last + 1, s.writeAll(m.records)
}

// writeAll takes the records of one answer. One that cannot be written is asked for again later; when none could, the
// disk is at fault.
func (s *Store) writeAll(rs []record) error {
	root, err := s.disk.root()
	if err != nil {
		return err
	}
	defer root.Close()
	bad := 0
	for _, r := range rs {
		what, failure := s.accept(root, r)
		s.metrics.received.WithLabelValues(string(what)).Inc()
		if failure != nil {
			bad, err = bad+1, failure
			s.fail("accept", r.id, failure)
		}
	}
	if bad == len(rs) {
		return fmt.Errorf("write minion data: %w", err)
	}
	return nil
}

// Answer answers another node's Pull.
func (s *Store) Answer(_ context.Context, _ node.ID, question []byte) ([]byte, error) {
	if s.Off() != "" {
		return encodeDigest(digest{ranged: true}), nil
	}
	m, err := decode(s.cfg.Kind, question)
	if err != nil {
		return nil, err
	}
	if m.digest == nil {
		return nil, errWire
	}
	if !s.Serves() {
		return nil, errNotYet
	}
	if m.digest.ranged {
		return encodeDigest(s.offer(*m.digest)), nil
	}
	var ids []string
	for _, st := range m.digest.stamps[:min(len(m.digest.stamps), maxRecords)] {
		ids = append(ids, st.id)
	}
	nobody := &peer{waits: map[string][]chan struct{}{}, sending: map[string][]chan struct{}{}} // waits for this
	batch, _, err := s.batch(nobody, ids)
	if err != nil {
		return nil, err
	}
	return encodeRecords(s.cfg.Kind, batch), nil
}

// offer lists what a digest lacks of what is here, as far as an answer goes.
func (s *Store) offer(d digest) digest {
	out := digest{ranged: true, from: d.from, to: d.to}
	s.mu.Lock()
	for _, id := range newer(s.table, d) {
		out.stamps = append(out.stamps, stamped{id, s.table[id].told()})
	}
	s.mu.Unlock()
	sortStamps(out.stamps)
	if len(out.stamps) > maxDigest {
		out.stamps = out.stamps[:maxDigest]
		out.to = out.stamps[maxDigest-1].id
	}
	return out
}
