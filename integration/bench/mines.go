package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"saltclusterd/integration/lab"
)

const (
	mineGoal    = 0.2  // of a bare master's CPU per request
	mineMinions = 24   // each asks again when it was answered
	mineCount   = 1000 // of each command, per side and round
)

// mineWorks are what is measured of mines.
var mineWorks = []struct {
	cmd, what string
	fields    func(p *pack, i int) map[string]any
	answer    []byte // nil: more than one byte
}{
	{"_mine", "two functions, one of them new each time", func(_ *pack, i int) map[string]any {
		return map[string]any{"data": map[string]any{"network.ip_addrs": []any{"10.0.0.1", "fe80::1"}, "status.uptime": i}}
	}, []byte{0xc3}},
	{"_mine_get", "one function of one minion", func(p *pack, i int) map[string]any {
		return map[string]any{"tgt": p.herd.IDs()[i%mineMinions], "fun": "network.ip_addrs", "tgt_type": "glob"}
	}, nil},
}

// mines measures what requests about mines cost, alone and behind saltclusterd.
func (b *bench) mines(ctx context.Context) error {
	var rows [][]string
	for _, version := range herdVersions {
		costs := make([]sideCosts, len(mineWorks))
		err := b.versus(ctx, version, mineMinions, 0, func(ctx context.Context, s sides) error {
			if err := s.each(func(p *pack) error { return errors.Join(p.calm(ctx, b.say), p.ready(ctx)) }); err != nil {
				return err
			}
			for i, work := range mineWorks {
				var err error
				if costs[i], err = b.takeTurns(s, work.cmd, always(mineCount), func(p *pack) error { return p.mine(ctx, i) }); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, work := range mineWorks {
			bare, ours, ratio := costs[i].bare, costs[i].ours, costs[i].ratio()
			rows = append(rows, []string{
				version, "`" + work.cmd + "`, " + work.what, bare.sum.show("%.2f"), ours.sum.show("%.2f"), ours.daemon.show("%.2f"),
				"**" + ratio.show("%.2f") + "**", fmt.Sprintf("≤ %.1f", mineGoal), atMost(ratio, mineGoal),
			})
		}
	}
	b.out.table("Mines (`_mine`, `_mine_get`)", fmt.Sprintf(
		"CPU milliseconds per request, whole process trees; %d minions, one request after the other, %d of each kind per side and round.",
		mineMinions, mineCount),
		[]string{"Salt", "request", "master alone", "behind saltclusterd", "of it saltclusterd", "ratio", "target", ""}, rows)
	return nil
}

// ready waits until mines are answered: saltclusterd answers what calm asks for also before it has seen its master.
func (p *pack) ready(ctx context.Context) error {
	return lab.Eventually(ctx, calmWithin, "mines to be answered", func(ctx context.Context) error {
		_, err := p.herd.Send(ctx, 0, "_mine_flush", nil)
		return err
	})
}

// mine has minions ask one kind of thing.
func (p *pack) mine(ctx context.Context, kind int) error {
	work := mineWorks[kind]
	for i := range mineCount {
		answer, err := p.herd.Send(ctx, i%mineMinions, work.cmd, work.fields(p, i))
		if err != nil {
			return err
		}
		if work.answer != nil && !bytes.Equal(answer, work.answer) || work.answer == nil && len(answer) < 2 {
			return fmt.Errorf("%s: answered %x", work.cmd, answer)
		}
	}
	return p.rest(ctx)
}
