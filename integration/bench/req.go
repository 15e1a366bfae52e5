package main

import (
	"context"
	"errors"
	"fmt"
	"time"
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

// reqs measures returns that no job asked for, alone and behind saltclusterd.
func (b *bench) reqs(ctx context.Context) error {
	var rows [][]string
	for _, version := range herdVersions {
		var cost sideCosts
		err := b.versus(ctx, version, reqMinions, reqKeys-reqMinions, func(ctx context.Context, s sides) (err error) {
			count := func(p *pack) int {
				if p.daemon == nil {
					return bareReturns
				}
				return reqReturns
			}
			cost, err = b.takeTurns(s, "return", count, func(p *pack) error { return p.returnUnasked(ctx, count(p)) })
			return err
		})
		if err != nil {
			return err
		}
		bare, ours := cost.bare, cost.ours
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
