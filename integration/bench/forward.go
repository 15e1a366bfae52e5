package main

import (
	"context"
	"fmt"
)

const (
	// cheapCommand asks the master for next to nothing: the environments of its file server. With cheapFields saltclusterd leaves it
	// to the master.
	cheapCommand = "_file_envs"

	forwardCPUGoal = 150.0 // µs in saltclusterd per request
	forwardP99Goal = 2.0   // ms added
)

var cheapFields = map[string]any{"sources": false}

// forwardCost is what a series of flows cost.
type forwardCost struct{ daemon, master, p50, p99 series }

func (c *forwardCost) add(f flow, requests float64) {
	c.daemon.add(micros(f.used.daemon) / requests)
	c.master.add(millis(f.used.master) / requests)
	c.p50.add(millis(f.p50))
	c.p99.add(millis(f.p99))
}

// paired lets both targets take turns; the first round warms up.
func (b *bench) paired(ctx context.Context, direct, through *target, conns, rate int) (d, t forwardCost, err error) {
	requests := b.forwardFor.Seconds() * float64(rate)
	for round := range b.sizes.rounds + 1 {
		for _, side := range []struct {
			*target
			cost *forwardCost
		}{{direct, &d}, {through, &t}} {
			f, err := side.flow(ctx, cheapCommand, cheapFields, conns, rate, b.forwardFor)
			if err != nil {
				return d, t, err
			}
			if round > 0 {
				side.cost.add(f, requests)
			}
		}
	}
	return d, t, nil
}

// forwardReal compares stock masters asked directly and through saltclusterd.
func (b *bench) forwardReal(ctx context.Context, duels []*duel) error {
	var rows [][]string
	for _, duel := range duels {
		b.say("requests to Salt %s, directly and through", duel.version)
		d, t, err := b.paired(ctx, duel.bare, duel.ours, 8, b.realRate)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			duel.version, t.daemon.show("%.0f"),
			d.master.show("%.2f"), t.master.show("%.2f"), t.master.over(d.master).show("%.2f"),
			d.p50.show("%.1f"), t.p50.show("%.1f"), d.p99.show("%.1f"), t.p99.show("%.1f"),
		})
	}
	b.out.table("Forwarded requests, stock masters", fmt.Sprintf(
		"`%s` at %d requests/s for %s per side and round, asked directly and through saltclusterd; each reply opened. "+
			"The target for CPU per request is judged at the higher rate below.",
		cheapCommand, b.realRate, b.forwardFor),
		[]string{"Salt", "saltclusterd CPU µs/request", "master CPU ms/request, direct", "through", "ratio",
			"p50 ms direct", "through", "p99 ms direct", "through"}, rows)
	return nil
}

// forwardFull measures saltclusterd at a rate that no stock master reaches.
func (b *bench) forwardFull(ctx context.Context, direct, through *target) error {
	b.say("%d requests/s to the stand-in, directly and through", b.fullRate)
	d, t, err := b.paired(ctx, direct, through, 100, b.fullRate)
	if err != nil {
		return err
	}
	added := t.p99.minus(d.p99)
	b.out.table(fmt.Sprintf("Forwarded requests at %d/s, a stand-in for the master", b.fullRate), fmt.Sprintf(
		"The master is a ROUTER written for this benchmark that opens each request and seals an empty map, so that it keeps up; "+
			"saltclusterd is the real one. %s per side and round over 100 connections; each reply opened.", b.forwardFor),
		[]string{"figure", "direct", "through saltclusterd", "difference", "target", ""}, [][]string{
			{"saltclusterd CPU µs/request", "–", t.daemon.show("%.0f"), "**" + t.daemon.show("%.0f") + "**",
				fmt.Sprintf("≤ %.0f", forwardCPUGoal), atMost(t.daemon, forwardCPUGoal)},
			{"p50 ms", d.p50.show("%.2f"), t.p50.show("%.2f"), t.p50.minus(d.p50).show("%.2f"), "", ""},
			{"p99 ms", d.p99.show("%.2f"), t.p99.show("%.2f"), "**" + added.show("%.2f") + "**",
				fmt.Sprintf("< %.0f", forwardP99Goal), p99Verdict(d.p99, added)},
		})
	return nil
}

// p99Verdict judges the added latency only where the direct way is steadier than the bound: on a busy machine a difference of two
// quantiles is chance.
func p99Verdict(direct, added series) string {
	if d := direct.sorted(); len(d) == 0 || d[len(d)-1]-d[0] > forwardP99Goal {
		return "not decidable: the direct way alone varies by more"
	}
	return atMost(added, forwardP99Goal)
}
