package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
)

// sealed is a request that is ready to be sent.
type sealed struct {
	by    *herd.Credentials
	body  []byte
	nonce string
	due   time.Time

	reply []byte
	took  time.Duration // from due to the reply, waiting for a free connection included
}

// seal makes count requests, of each minion in turn.
func (t *target) seal(cmd string, fields map[string]any, count int) ([]*sealed, error) {
	all := make([]*sealed, count)
	for i := range all {
		c := t.creds[i%len(t.creds)]
		body, nonce, err := c.Request(cmd, fields)
		if err != nil {
			return nil, err
		}
		all[i] = &sealed{by: c, body: body, nonce: nonce}
	}
	return all, nil
}

// atRate sends requests at a steady rate whatever becomes of the ones before, each on a free connection. It returns when
// all are answered.
func atRate(ctx context.Context, peers []*peer, all []*sealed, perSecond int) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin+time.Duration(len(all)/perSecond)*time.Second)
	defer cancel()
	due := make(chan *sealed, len(all))
	g, ctx := errgroup.WithContext(ctx) // the first failure ends them all
	defer hangUpAfter(ctx, peers)()
	for _, p := range peers {
		g.Go(func() error { return p.work(due) })
	}
	every := time.Second / time.Duration(perSecond)
	start := time.Now().Add(every)
	for i, s := range all {
		s.due = start.Add(time.Duration(i) * every)
		time.Sleep(time.Until(s.due))
		due <- s
	}
	close(due)
	return g.Wait()
}

func (p *peer) work(due <-chan *sealed) (err error) {
	for s := range due {
		if s.reply, err = p.ask(s.body); err != nil {
			return err
		}
		s.took = time.Since(s.due)
	}
	return nil
}

// flow is what came out of one round at a rate.
type flow struct {
	used     used
	p50, p99 time.Duration
}

// flow measures one round; every reply is opened afterwards.
func (t *target) flow(ctx context.Context, cmd string, fields map[string]any, conns, perSecond int, long time.Duration) (f flow, err error) {
	all, err := t.seal(cmd, fields, int(long.Seconds()*float64(perSecond)))
	if err != nil {
		return f, err
	}
	peers, hangUp, err := t.dialAll(ctx, conns)
	if err != nil {
		return f, err
	}
	defer hangUp()
	if f.used, err = t.spend(func() error { return atRate(ctx, peers, all, perSecond) }); err != nil {
		return f, err
	}
	times := make([]time.Duration, len(all))
	for i, s := range all {
		if _, err := s.by.Open(s.reply, s.nonce); err != nil {
			return f, fmt.Errorf("%s: %w", t.name, err)
		}
		times[i] = s.took
	}
	f.p50, f.p99 = quantile(times, 0.5), quantile(times, 0.99)
	return f, nil
}
