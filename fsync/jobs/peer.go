package jobs

import (
	"context"

	"saltclusterd/fsync/replica"
)

// maxDirty bounds the jobs of which it is known that a peer may lack something. More are all jobs.
const maxDirty = 10_000

// peer sends to one other member: records, and then comparisons of the jobs whose ids wait in its line.
type peer struct {
	*replica.Peer[string]
	s      *Store
	stream stream
}

// enqueue sends a record soon, or makes its job dirty.
func (p *peer) enqueue(r *record) {
	switch {
	case p.Off():
	case p.Err() == nil && p.stream.add(r):
		p.Wake()
	default:
		p.Add(r.jid)
	}
}

// First implements feed.Sender: it sends records. Those that did not arrive make their jobs dirty.
func (p *peer) First(ctx context.Context) (did bool, err error) {
	if p.Err() != nil || p.Off() { // the peer may be away for long
		p.soil(p.stream.takeAll())
	}
	batch := p.stream.take()
	if len(batch) == 0 {
		return false, nil
	}
	if err := p.sendRecords(ctx, batch); err != nil {
		p.soil(batch)
		return true, err
	}
	return true, nil
}

func (p *peer) soil(rs []*record) {
	last := ""
	for _, r := range rs {
		if r.jid != last {
			p.Add(r.jid)
			last = r.jid
		}
	}
}

// Digest implements feed.Sender.
func (p *peer) Digest(ctx context.Context, ask bool) error { return p.compareAll(ctx, ask) }

// Send implements feed.Sender.
func (p *peer) Send(ctx context.Context, jids []string) (rest []string, err error) {
	_, err = p.compare(ctx, jids, false)
	return nil, err
}

// Failed implements feed.Sender.
func (p *peer) Failed(err error) {
	p.soil(p.stream.takeAll())
	p.s.metrics.failures.WithLabelValues("send").Inc()
	p.s.cfg.Logger.Debug("jobs not sent", "node", p.ID(), "err", err)
}
