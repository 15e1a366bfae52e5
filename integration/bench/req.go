package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"saltclusterd/integration/lab"
)

const (
	returnGoal  = 1.0  // ms of CPU per `_return` with jid "req"
	reqKeys     = 5000 // accepted
	reqMinions  = 24   // of them play
	reqReturns  = 2000 // per round
	bareReturns = 5    // of which each may cost half a second

	restEvery  = 250 * time.Millisecond
	restBelow  = 25 * time.Millisecond // of CPU in that time: the last event is through
	restWithin = 30 * time.Second
)

// reqCost is what one side needs for such a return, in ms.
type reqCost struct{ daemon, master, sum series }

// reqs measures returns that no job asked for, alone and behind saltclusterd.
func (b *bench) reqs(ctx context.Context) error {
	var rows [][]string
	for _, version := range herdVersions {
		var cost [2]reqCost
		for side, make := range packs {
			err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
				p, err := make(ctx, l, version, reqMinions, reqKeys-reqMinions)
				if err != nil {
					return err
				}
				defer p.close()
				return b.measureReqs(ctx, p, &cost[side])
			})
			if err != nil {
				return err
			}
		}
		bare, ours := cost[0], cost[1]
		rows = append(rows, []string{
			version, bare.sum.show("%.1f"), "**" + ours.sum.show("%.2f") + "**", ours.daemon.show("%.2f"), ours.master.show("%.2f"),
			fmt.Sprintf("≤ %.0f", returnGoal), atMost(ours.sum, returnGoal),
		})
	}
	b.out.table(fmt.Sprintf("`_return` with jid `req`, %d accepted keys", reqKeys), fmt.Sprintf(
		"CPU milliseconds per return, whole process trees; %d minions, one return after the other, %d per round (%d to a master alone). Of it the "+
			"master: what its processes do with the one event that such a return fires.", reqMinions, reqReturns, bareReturns),
		[]string{"Salt", "master alone", "behind saltclusterd", "of it saltclusterd", "of it the master", "target", ""}, rows)
	return nil
}

func (b *bench) measureReqs(ctx context.Context, p *pack, cost *reqCost) error {
	if err := p.gather(ctx, b.say); err != nil {
		return err
	}
	count := reqReturns
	if p.daemon == nil {
		count = bareReturns
	}
	return b.measureEach(p, cost, "return", count, func() error { return p.returnUnasked(ctx, count) })
}

// measureEach measures what one of count things costs that act has minions do, round by round.
func (b *bench) measureEach(p *pack, cost *reqCost, what string, count int, act func() error) error {
	for round := range b.sizes.rounds + 1 {
		u, err := p.spend(act)
		if err != nil {
			return err
		}
		daemon, master := millis(u.daemon)/float64(count), millis(u.master)/float64(count)
		b.say("%s: %.2f ms of the master and %.2f of saltclusterd per %s, round %d", p.name, master, daemon, what, round)
		if round == 0 { // it has read much that the others have at hand
			continue
		}
		cost.daemon.add(daemon)
		cost.master.add(master)
		cost.sum.add(daemon + master)
	}
	return nil
}

// returnUnasked has minions return what no job asked for.
func (p *pack) returnUnasked(ctx context.Context, count int) error {
	for i := range count {
		_, err := p.herd.Send(ctx, i%reqMinions, "_return", map[string]any{
			"jid": "req", "fun": "status.uptime", "fun_args": []any{}, "return": map[string]any{"seconds": i}, "success": true, "retcode": 0,
		})
		if err != nil {
			return err
		}
	}
	return p.rest(ctx)
}

// rest waits until what follows the last acknowledgement has been done, too: events go to the master at a pace, and it has its own.
func (p *pack) rest(ctx context.Context) error {
	last, err := p.cpu()
	if err != nil {
		return err
	}
	for end := time.Now().Add(restWithin); time.Now().Before(end) && sleep(ctx, restEvery); {
		now, err := p.cpu()
		if err != nil {
			return err
		}
		if now.minus(last).sum() < restBelow {
			return nil
		}
		last = now
	}
	return errors.Join(ctx.Err(), fmt.Errorf("%s: busy %s after the last return", p.name, restWithin))
}
