package jobs

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

// maxAnswer bounds what a peer answers to a comparison.
const maxAnswer = 8 << 20

func (p *peer) sendRecords(ctx context.Context, rs []*record) error {
	body := encodeRecords(rs)
	answer, err := p.Call(ctx, body, maxAnswer)
	if err != nil {
		return err
	}
	w, err := decodeWish(answer, 0, false)
	if err != nil {
		return err
	}
	p.SetOff(w.flags&answerOff != 0)
	p.s.metrics.sent.Add(float64(len(rs)))
	p.s.metrics.bytes.Add(float64(len(body)))
	return nil
}

// compareAll compares every job that a peer shall have, the newest first. What others are writing now is left out: they
// tell of it themselves.
func (p *peer) compareAll(ctx context.Context, answer bool) error {
	var jids []string
	s := p.s
	settled := s.cfg.Now().Add(-2 * s.cfg.Timing.Quiet).UnixNano()
	s.index.mu.Lock()
	for jid, j := range s.index.jobs {
		if j.own || j.at < settled {
			jids = append(jids, jid)
		}
	}
	s.index.mu.Unlock()
	slices.SortFunc(jids, func(a, b string) int { return strings.Compare(b, a) })
	jids = slices.DeleteFunc(jids, func(jid string) bool { return !slices.Contains(s.cfg.Replicas(jid), p.ID()) })
	for page := range slices.Chunk(jids, maxDigest) {
		told, err := p.compare(ctx, page, answer)
		if err != nil {
			return err
		}
		answer = answer && !told
		if p.Off() {
			return nil
		}
	}
	_, err := p.tell(ctx, digest{answer: answer}) // that was all
	return err
}

// tell sends a digest and returns what the peer wants of it.
func (p *peer) tell(ctx context.Context, d digest) (w wish, err error) {
	raw, err := p.Call(ctx, encodeDigest(d), maxAnswer)
	if err != nil {
		return w, err
	}
	if w, err = decodeWish(raw, len(d.jobs), true); err == nil {
		p.SetOff(w.flags&answerOff != 0)
	}
	return w, err
}

// compare tells a peer the sums of jobs, if there are any, and sends what it lacks of them.
func (p *peer) compare(ctx context.Context, jids []string, answer bool) (told bool, err error) {
	d, s := digest{answer: answer}, p.s
	for _, jid := range jids {
		if j, ok := s.index.fresh(jid); ok && !s.over(j.at) {
			d.jobs = append(d.jobs, digested{jid, j.at, j.sum})
		}
	}
	if len(d.jobs) == 0 {
		return false, nil
	}
	w, err := p.tell(ctx, d)
	if err != nil {
		return false, err
	}
	b := batch{ctx: ctx, p: p}
	for i, n := range w.which {
		if err := s.sendJob(&b, d.jobs[n].jid, w.how[i] == wantAll); err != nil {
			return true, err
		}
	}
	if err := b.flush(); err != nil {
		return true, err
	}
	if w.flags&answerAgain != 0 { // what another node claims to send is compared once more, because it may fail
		time.AfterFunc(s.cfg.Timing.Claim, func() { p.Add(jidsOf(d.jobs)...) })
	}
	return true, nil
}

func jidsOf(jobs []digested) []string {
	out := make([]string, 0, len(jobs))
	for _, j := range jobs {
		out = append(out, j.jid)
	}
	return out
}

// over says whether a job is about to be removed here.
func (s *Store) over(at int64) bool {
	s.index.mu.Lock()
	defer s.index.mu.Unlock()
	return s.index.nearlyOver(at)
}

// batch collects records for a peer, and sends them when they are enough.
type batch struct {
	ctx   context.Context
	p     *peer
	rs    []*record
	bytes int
}

func (b *batch) add(r *record) error {
	b.rs = append(b.rs, r)
	if b.bytes += r.weight(); b.bytes >= batchBytes || len(b.rs) >= batchRecords {
		return b.flush()
	}
	return nil
}

func (b *batch) flush() error {
	if len(b.rs) == 0 {
		return nil
	}
	err := b.p.sendRecords(b.ctx, b.rs)
	b.rs, b.bytes = nil, 0
	return err
}

// sendJob sends a job, or what the peer lacks of it.
func (s *Store) sendJob(b *batch, jid string, all bool) error {
	look, err := s.disk.look(jid)
	if gone(err) {
		return nil // removed meanwhile
	}
	if err != nil {
		s.fail("read", jid, err)
		return nil
	}
	items := look.items
	if !all {
		if items, err = s.lacking(b, jid, look); err != nil {
			return err
		}
	}
	err = s.disk.fetch(jid, look.at, items, b.add, s.skipped(jid))
	if gone(err) {
		return nil
	}
	return err
}

// lacking asks a peer which items it wants.
func (s *Store) lacking(b *batch, jid string, look sight) ([]item, error) {
	if len(look.items) > maxItems {
		return nil, errors.New("too many items in a job")
	}
	raw, err := b.p.Call(b.ctx, encodeItems(listed{jid, look.at, look.items}), maxAnswer)
	if err != nil {
		return nil, err
	}
	w, err := decodeWish(raw, len(look.items), false)
	if err != nil {
		return nil, err
	}
	out := make([]item, 0, len(w.which))
	for _, n := range w.which {
		out = append(out, look.items[n])
	}
	return out, nil
}
