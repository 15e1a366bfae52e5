package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"saltclusterd/gossip/node"
)

// Bounds of what a node fetches before it serves: the newest jobs. The others come with the comparisons afterwards.
const (
	maxPulled      = 1_000
	maxPulledBytes = 64 << 20
	pullers        = 4
)

// Ask sends a question to another node's Answer and returns what that says, of at most MaxBody bytes.
type Ask func(ctx context.Context, question []byte) (answer []byte, err error)

// Pull brings this node up to the newest jobs of another one, and tells how far it is. It asks for their sums
// (kindList, answered with kindDigest), and for each job that differs (kindFind).
func (s *Store) Pull(ctx context.Context, ask Ask, tell func(done, total int)) error {
	if s.cfg.Off != "" {
		return nil
	}
	select {
	case <-s.looked:
	case <-ctx.Done():
		return ctx.Err()
	}
	raw, err := ask(ctx, encodeList(maxPulled))
	if err != nil {
		return err
	}
	m, err := decode(raw)
	if err != nil {
		return err
	}
	if m.kind != kindDigest {
		return errWire
	}
	lacking := slices.DeleteFunc(m.digest.jobs, func(j digested) bool { return s.has(j) })
	tell(0, len(lacking))
	var done, size atomic.Int64
	var g errgroup.Group
	g.SetLimit(pullers)
	for _, j := range lacking {
		if ctx.Err() != nil || size.Load() > maxPulledBytes {
			break
		}
		g.Go(func() error {
			n, err := s.pullJob(ctx, ask, j.jid)
			size.Add(int64(n))
			if err != nil {
				return err
			}
			tell(int(done.Add(1)), len(lacking))
			return nil
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}

// has says whether a job is here as a peer has it, or is not to be.
func (s *Store) has(theirs digested) bool {
	ours, ok := s.index.fresh(theirs.jid)
	return ok && ours.sum == theirs.sum || !ok && s.index.refuses(theirs.jid, theirs.at, true) != ""
}

// pullJob fetches a job, or as much of a large one as is sent at once.
func (s *Store) pullJob(ctx context.Context, ask Ask, jid string) (size int, err error) {
	raw, err := ask(ctx, encodeFind(jid))
	if err != nil {
		return 0, err
	}
	m, err := decode(raw)
	if err != nil {
		return 0, err
	}
	rs := slices.DeleteFunc(m.records, func(r *record) bool { return r.name == cutName || r.jid != jid })
	if len(rs) == 0 {
		return len(raw), nil // removed meanwhile
	}
	if err := s.accept(rs); err != nil {
		return len(raw), fmt.Errorf("write job %s: %w", jid, err)
	}
	return len(raw), nil
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
	case s.cfg.Off != "":
		return encodeDigest(digest{}), nil
	}
	select {
	case <-s.looked:
	default:
		return nil, errNotOpen
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
