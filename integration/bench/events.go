package main

import (
	"context"
	"fmt"
)

const (
	eventGoal    = 0.2  // of a bare master's CPU per `_minion_event`
	eventMinions = 24   // each fires the next one when its last was answered
	eventCount   = 2000 // per side and round
)

// events measures what a minion's event costs, alone and behind saltclusterd.
func (b *bench) events(ctx context.Context) error {
	var rows [][]string
	for _, version := range herdVersions {
		var cost sideCosts
		err := b.versus(ctx, version, eventMinions, 0, func(ctx context.Context, s sides) (err error) {
			if err = s.each(func(p *pack) error { return p.calm(ctx, b.say) }); err != nil {
				return err
			}
			cost, err = b.takeTurns(s, "event", always(eventCount), func(p *pack) error { return p.fire(ctx, eventCount) })
			return err
		})
		if err != nil {
			return err
		}
		bare, ours, ratio := cost.bare, cost.ours, cost.ratio()
		rows = append(rows, []string{
			version, bare.sum.show("%.2f"), ours.sum.show("%.2f"), ours.daemon.show("%.2f"), ours.master.show("%.2f"),
			"**" + ratio.show("%.2f") + "**", fmt.Sprintf("≤ %.1f", eventGoal), atMost(ratio, eventGoal),
		})
	}
	b.out.table("Events of minions (`_minion_event`)", fmt.Sprintf(
		"CPU milliseconds per event, whole process trees; %d minions, one event after the other, %d per side and round. Of it the master: what its "+
			"processes do with an event on their bus.", eventMinions, eventCount),
		[]string{"Salt", "master alone", "behind saltclusterd", "of it saltclusterd", "of it the master", "ratio", "target", ""}, rows)
	return nil
}

// fire has minions fire events.
func (p *pack) fire(ctx context.Context, count int) error {
	for i := range count {
		_, err := p.herd.Send(ctx, i%eventMinions, "_minion_event", map[string]any{
			"tag": "site/backup/done", "data": map[string]any{"volume": "data", "seconds": i}, "pretag": nil,
		})
		if err != nil {
			return err
		}
	}
	return p.rest(ctx)
}
