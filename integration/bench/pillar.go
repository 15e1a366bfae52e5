package main

import (
	"context"
	"fmt"
	"path/filepath"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

const (
	pillarGoal = 1.02 // of the bare master's CPU: rendering is Python's, and stays
	// pillarLeast is how large an answer is when all of the tree has been rendered.
	pillarLeast = 8 << 10
)

// pillarCost is what one side needs for a pillar, in ms.
type pillarCost struct{ daemon, master, sum series }

// pillars measures what a pillar costs, alone and behind saltclusterd.
func (b *bench) pillars(ctx context.Context) error {
	minions, err := newMinions(b.minions)
	if err != nil {
		return err
	}
	var rows [][]string
	size := 0
	for _, version := range herdVersions {
		if err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			bare, ours, bytes, err := b.pillarsOf(ctx, l, version, minions)
			if err != nil {
				return err
			}
			size = bytes
			ratio := ours.sum.over(bare.sum)
			rows = append(rows, []string{
				version, bare.sum.show("%.1f"), ours.sum.show("%.1f"), ours.daemon.show("%.2f"), ours.master.over(bare.master).show("%.3f"),
				"**" + ratio.show("%.3f") + "**", fmt.Sprintf("≤ %.2f", pillarGoal), atMost(ratio, pillarGoal),
			})
			return nil
		}); err != nil {
			return err
		}
	}
	b.out.table("Pillars (`_pillar`)", fmt.Sprintf(
		"CPU milliseconds per pillar, whole process trees: %d per side and round, %d at a time, of %d minions with some hundred grains. The tree has %d "+
			"files, of which a minion gets %d by its name, its grains and for all, with loops, a map that is imported and a filter by grains; "+
			"the answer is %d KiB and is opened, its signature verified. Rendering is the master's on both sides, and what it needs of itself differs "+
			"from one to the next by more than saltclusterd adds, which is the column \"of it saltclusterd\": to open, look through and pass on the "+
			"request, and to give grains and pillar to the other nodes' caches.",
		b.pillarCount, pillarAtATime, b.minions, len(pillarFiles()), pillarsEach, size>>10),
		[]string{"Salt", "master alone", "behind saltclusterd", "of it saltclusterd", "of it the master, ratio", "ratio", "target", ""}, rows)
	return nil
}

// pillarAtATime is how many minions ask at a time: as many as there are processors here.
const pillarAtATime = 2

func (b *bench) pillarsOf(ctx context.Context, l *lab.Lab, version string, minions []*herd.Identity) (bare, ours pillarCost, bytes int, err error) {
	b.say("pillars of Salt %s, alone and behind saltclusterd", version)
	alone, err := bareMaster(ctx, l, "bare", version, minions, b.fleet)
	if err != nil {
		return bare, ours, 0, err
	}
	behind, err := clusterNode(ctx, l, "ours", version, minions, b.fleet)
	if err != nil {
		return bare, ours, 0, err
	}
	sides := []*target{alone, behind}
	for _, t := range sides {
		if err := writePillars(filepath.Join(t.master.Host().Dir(), "srv/pillar")); err != nil {
			return bare, ours, 0, err
		}
		if err := t.enroll(ctx, minions); err != nil {
			return bare, ours, 0, err
		}
	}
	for round := range b.sizes.rounds + 1 {
		// Whoever is first in a round finds the other's warmth in the processor's caches, or does not: they take turns in that, too.
		for i := range sides {
			t, cost := sides[(round+i)%2], &bare
			if t == behind {
				cost = &ours
			}
			u, n, err := t.askPillars(ctx, b.pillarCount)
			if err != nil {
				return bare, ours, 0, err
			}
			daemon, master := millis(u.daemon)/float64(b.pillarCount), millis(u.master)/float64(b.pillarCount)
			b.say("%s: %.1f ms of the master and %.2f of saltclusterd per pillar, round %d", t.name, master, daemon, round)
			if bytes = n; round == 0 { // warms up
				continue
			}
			cost.daemon.add(daemon)
			cost.master.add(master)
			cost.sum.add(daemon + master)
		}
	}
	return bare, ours, bytes, nil
}

// askPillars has minions ask for their pillars (salt/pillar/__init__.py:AsyncRemotePillar.compile_pillar), and tells what the target used
// and how large the last answer was.
func (t *target) askPillars(ctx context.Context, count int) (u used, size int, err error) {
	u, err = t.askMany(ctx, "_pillar", count, pillarAtATime, func(i int) map[string]any {
		return map[string]any{
			"grains": pillarGrains(i % len(t.creds)), "saltenv": nil, "pillarenv": nil, "pillar_override": map[string]any{},
			"extra_minion_data": map[string]any{}, "ver": "2",
		}
	}, func(s *sealed) error {
		plain, err := s.by.OpenPrivate(s.reply, s.nonce)
		if size = len(plain); err == nil && size < pillarLeast {
			err = fmt.Errorf("a pillar of %d bytes: %.200q", size, plain)
		}
		return err
	})
	return u, size, err
}
