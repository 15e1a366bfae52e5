package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/integration/lab"
)

const (
	realRate, fullRate = 200, 1000 // requests/s to a stock master and to the stand-in

	forwardCPUGoal = 150.0 // µs in saltclusterd per request
	forwardP99Goal = 2.0   // ms added
)

// forward measures requests that saltclusterd leaves to the master.
func (b *bench) forward(ctx context.Context) error {
	var rows [][]string
	stock := steadily(func(b *bench, ctx context.Context) error {
		return b.versus(ctx, versions, func(ctx context.Context, bare, ours *target) error {
			row, err := b.forwarded(ctx, bare, ours, 8, realRate)
			rows = append(rows, append(row, "", "", ""))
			return err
		})
	})
	if err := stock(b, ctx); err != nil {
		return err
	}
	// Processors may rest here: a thread that is woken must not wait until one that keeps them awake gives way.
	err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		direct, through, err := b.standIn(ctx, l)
		if err != nil {
			return err
		}
		row, err := b.forwarded(ctx, direct, through, 100, fullRate)
		rows = append(rows, row)
		return err
	})
	if err != nil {
		return err
	}
	b.table("Forwarded requests", fmt.Sprintf("`_file_envs` for %s per side and round, sent directly and through "+
		"saltclusterd. Each reply is decrypted. No stock master answers %d requests/s, so the targets apply to a stand-in: a "+
		"ROUTER that decrypts each request and answers with an encrypted empty map.", b.forwardFor(), fullRate),
		[]string{
			"master", "requests/s", "saltclusterd CPU µs/request", "master CPU ms/request, direct", "through", "ratio",
			"p50 ms direct", "through", "p99 ms direct", "through", "added", "target", "",
		}, rows)
	return nil
}

func (b *bench) forwardFor() time.Duration { return pick(b, 4*time.Second, 2*time.Second) }

// forwarded has both sides asked at a rate. The requests are for the environments of the file server, which cost a
// master next to nothing. With a field that no minion sends saltclusterd leaves them to the master.
func (b *bench) forwarded(ctx context.Context, direct, through *target, conns, rate int) ([]string, error) {
	b.say("%d requests/s to %s, directly and through", rate, direct.name)
	l := load{
		cmd: "_file_envs", count: rate * int(b.forwardFor().Seconds()), conns: conns, perSecond: rate,
		fields: func(int) map[string]any { return map[string]any{"sources": false} },
	}
	var p50, p99 [2]series
	d, t, err := b.turns(direct, through, l.count, func(side *target) (used, error) {
		u, took, err := side.ask(ctx, l)
		i := 0
		if side == through {
			i = 1
		}
		p50[i].add(millis(quantile(took, 0.5)))
		p99[i].add(millis(quantile(took, 0.99)))
		return u, err
	})
	if err != nil {
		return nil, err
	}
	for i := range p50 { // without the round that warms up
		p50[i], p99[i] = p50[i][1:], p99[i][1:]
	}
	cpu := t.daemon.times(1000)
	row := []string{
		direct.name, fmt.Sprint(rate), cpu.bold("%.0f"), d.master.show("%.2f"), t.master.show("%.2f"),
		t.master.over(d.master).show("%.2f"), p50[0].show("%.2f"), p50[1].show("%.2f"), p99[0].show("%.2f"),
		p99[1].show("%.2f"),
	}
	if direct.salt != nil {
		return row, nil
	}
	added := p99[1].minus(p99[0])
	verdict := atMost(added, forwardP99Goal)
	if v := p99[0].sorted(); v[len(v)-1]-v[0] > forwardP99Goal { // a difference of two such quantiles is chance
		verdict = "not decidable: the direct way alone varies by more"
	}
	return append(row, added.bold("%.2f"), fmt.Sprintf("≤ %.0f µs, < %.0f ms", forwardCPUGoal, forwardP99Goal),
		atMost(cpu, forwardCPUGoal)+", "+verdict), nil
}
