package datacache

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Ask sends a question to another node's Answer and returns what that says, of at most MaxBody bytes.
type Ask func(ctx context.Context, question []byte) (answer []byte, err error)

// pullers is how many questions for records are under way at a time: while one is answered, another one's are written.
const pullers = 3

// Pull brings this node up to what another one has, and tells how far it is. What it has not got when it is cut off is
// lacking still when it is called again.
//
// A question is a digest. One with a range is answered with the stamps of what the asker lacks in that range; the
// answer's range ends where it was cut. One without is answered with records, of as many ids from the first on as fit.
func (s *Store) Pull(ctx context.Context, ask Ask, tell func(done, total int)) error {
	if s.off != "" {
		return nil
	}
	if err := s.awaitScan(ctx); err != nil {
		return err
	}
	ids, err := s.offered(ctx, ask)
	if err != nil {
		return err
	}
	done := 0
	tell(done, len(ids))
	var g errgroup.Group
	g.SetLimit(pullers)
	for page := range slices.Chunk(ids, maxRecords) {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			for len(page) > 0 {
				n, err := s.fetch(ctx, ask, page)
				if err != nil {
					return err
				}
				page = page[n:]
				s.mu.Lock()
				done += n
				sum := done
				s.mu.Unlock()
				tell(sum, len(ids))
			}
			return nil
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

func (s *Store) awaitScan(ctx context.Context) error {
	select {
	case <-s.looked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// offered asks for the ids of which the other node has later data.
func (s *Store) offered(ctx context.Context, ask Ask) (ids []string, err error) {
	for from := ""; ; {
		q := s.digestFrom(from, maxDigest)
		raw, err := ask(ctx, encodeDigest(q))
		if err != nil {
			return nil, err
		}
		m, err := decode(s.cfg.Kind, raw)
		if err != nil {
			return nil, err
		}
		if m.digest == nil || !m.digest.ranged || m.digest.to != "" && m.digest.to <= from {
			return nil, errWire
		}
		for _, st := range m.digest.stamps {
			ids = append(ids, st.id)
		}
		if m.digest.to == "" || len(ids) > maxPending {
			return ids, nil // who has more tells of it later, as always
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
func (s *Store) fetch(ctx context.Context, ask Ask, ids []string) (n int, err error) {
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
func (s *Store) Answer(ctx context.Context, question []byte) ([]byte, error) {
	if s.off != "" {
		return encodeDigest(digest{ranged: true}), nil
	}
	m, err := decode(s.cfg.Kind, question)
	if err != nil {
		return nil, err
	}
	if m.digest == nil {
		return nil, errWire
	}
	if !s.open() {
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
