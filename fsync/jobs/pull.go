package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/fsync/replica"
	"saltclusterd/gossip/node"
)

// Bounds of what a node fetches before it serves: the newest jobs. The others come with the comparisons afterwards.
const (
	maxPulled      = 1_000
	maxPulledBytes = 64 << 20
)

// askOffer asks another node for the newest jobs (kindList, answered with kindDigest), and lists those that differ.
func (s *Store) askOffer(ctx context.Context, ask replica.Ask) (jids []string, got int, err error) {
	raw, err := ask(ctx, encodeList(maxPulled))
	if err != nil {
		return nil, 0, err
	}
	m, err := decode(raw)
	if err != nil {
		return nil, 0, err
	}
	if m.kind != kindDigest {
		return nil, 0, errWire
	}
	s.pulled.Store(0)
	return jidsOf(slices.DeleteFunc(m.digest.jobs, s.has)), 0, nil
}

// has says whether a job is here as a peer has it, or is not to be.
func (s *Store) has(theirs digested) bool {
	ours, ok := s.index.fresh(theirs.jid)
	return ok && ours.sum == theirs.sum || !ok && s.index.refuses(theirs.jid, theirs.at, true) != ""
}

// fetch gets a job (kindFind), or as much of a large one as is sent at once. When enough has come it gets none.
func (s *Store) fetch(ctx context.Context, ask replica.Ask, page []string) (n int, err error) {
	if s.pulled.Load() > maxPulledBytes {
		return 0, nil
	}
	jid := page[0]
	raw, err := ask(ctx, encodeFind(jid))
	if err != nil {
		return 0, err
	}
	s.pulled.Add(int64(len(raw)))
	m, err := decode(raw)
	if err != nil {
		return 0, err
	}
	rs := slices.DeleteFunc(m.records, func(r *record) bool { return r.name == cutName || r.jid != jid })
	if len(rs) > 0 { // or it was removed meanwhile
		err = s.accept(rs)
	}
	if err != nil {
		return 0, fmt.Errorf("write job %s: %w", jid, err)
	}
	return 1, nil
}

// Answer answers another node's Pull: with the newest jobs that it shall have, or one of them.
func (s *Store) Answer(ctx context.Context, from node.ID, question []byte) ([]byte, error) {
	m, err := decode(question)
	if err != nil {
		return nil, err
	}
	switch {
	case m.kind == kindFind:
		return s.local(m.jid)
	case m.kind != kindList:
		return nil, errWire
	case s.Off() != "":
		return encodeDigest(digest{}), nil
	case !s.Scanned():
		return nil, errNotYet
	}
	var d digest
	for _, jid := range s.newest(from, min(m.count, maxDigest)) {
		if j, ok := s.index.fresh(jid); ok && !s.over(j.at) {
			d.jobs = append(d.jobs, digested{jid, j.at, j.sum})
		}
	}
	return encodeDigest(d), ctx.Err()
}

// newest lists up to n jobs that a node shall have.
func (s *Store) newest(id node.ID, n int) []string {
	s.index.mu.Lock()
	jids := make([]string, 0, len(s.index.jobs))
	for jid := range s.index.jobs {
		jids = append(jids, jid)
	}
	s.index.mu.Unlock()
	slices.SortFunc(jids, func(a, b string) int { return strings.Compare(b, a) })
	out := jids[:0]
	for _, jid := range jids {
		if len(out) == n {
			break
		}
		if slices.Contains(s.cfg.Replicas(jid), id) {
			out = append(out, jid)
		}
	}
	return out
}
