package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

// herdVersions are the Salt versions whose jobs are measured; the played minions are of all versions in turn.
var herdVersions = []string{"3006.28", "3008.3"}

// herdGoals are at most so much of the bare master, by number of minions; 0: none. With few minions the command line tool's own
// start is most of its time.
func herdGoals(minions int) (job, cli float64) {
	if minions >= 5000 {
		return 0.1, 0.3
	}
	return 0.25, 0
}

// packs make the two sides.
var packs = []func(ctx context.Context, l *lab.Lab, version string, n, fleet int) (*pack, error){barePack, clusterPack}

// jobCost is what a side needs for a job.
type jobCost struct {
	acked, lost, cached, cli, cpu, herdCPU series

	first *jobCost // of the first job, with which the master reads much that it has at hand for the others
	note  string   // what is to be said of the figures
}

// herds measures jobs of many minions, alone and behind saltclusterd.
func (b *bench) herds(ctx context.Context) error {
	var jobs [][]string
	var notes string
	for _, version := range herdVersions {
		var cost [2]jobCost
		for side, make := range packs {
			err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
				p, err := make(ctx, l, version, b.herd, 0)
				if err != nil {
					return err
				}
				defer p.close()
				if p.daemon == nil {
					return b.patiently(ctx, p, &cost[side])
				}
				return b.measurePack(ctx, p, &cost[side])
			})
			if err != nil {
				return err
			}
		}
		bare, ours := cost[0], cost[1]
		if bare.note != "" {
			notes += " " + bare.note
		}
		job, cli := herdGoals(b.herd)
		row := func(what string, bare, ours series, goal float64, format string) {
			r := overall(ours, bare)
			cells := []string{version, what, bare.show(format), ours.show(format), "**" + r.show("%.3f") + "**", "", ""}
			if goal > 0 && len(r) > 0 {
				cells[5], cells[6] = fmt.Sprintf("≤ %.2f", goal), atMost(r, goal)
			}
			jobs = append(jobs, cells)
		}
		row("returns that their minions gave up", bare.lost, ours.lost, 0, "%.0f")
		row("s, publication until none waits for an acknowledgement", bare.acked, ours.acked, job, "%.2f")
		row("s, publication until whole in the job cache", bare.cached, ours.cached, job, "%.2f")
		row("s, the command line tool", bare.cli, ours.cli, cli, "%.1f")
		row("CPU ms per minion, master and saltclusterd", bare.cpu, ours.cpu, 0, "%.2f")
		row("CPU ms per minion, the herd's own", bare.herdCPU, ours.herdCPU, 0, "%.2f")
	}
	b.out.table(fmt.Sprintf("test.ping of %d minions", b.herd), fmt.Sprintf(
		"Published with `salt --async`, answered at once by %d played minions of 3006, 3007 and 3008 in turn that sign in, verify, retry and "+
			"reconnect as stock ones do, each with two connections. Time from the first minion that has it to the last return acknowledged or given "+
			"up after three tries, and until the job cache has all. "+
			"The command line tool: `salt -t %d '*' test.ping`, from start to end. Sides after each other; median of ours over median of bare. "+
			"Before each job the master is waited for: all minions subscribed, nobody signing in, %d requests answered within %s each. "+
			"The job cache is on %s.%s",
		b.herd, int(cliPatience.Seconds()), calmProbes, calmAnswer, fileSystem(os.TempDir()), notes),
		[]string{"Salt", "figure", "master alone", "behind saltclusterd", "ratio", "target", ""}, jobs)
	return nil
}

// overall is the ratio of medians, for sides that did not take turns; one is lost on a side that has no figure.
func overall(ours, bare series) series {
	if len(ours) == 0 || bare.median() == 0 {
		return nil
	}
	var r series
	for _, v := range ours {
		r.add(v / bare.median())
	}
	return r
}

func (b *bench) measurePack(ctx context.Context, p *pack, cost *jobCost) error {
	if err := p.gather(ctx, b.say); err != nil {
		return err
	}
	cost.first = &jobCost{}
	for round := range b.herdRounds + 1 {
		if err := p.calm(ctx, b.say); err != nil {
			return err
		}
		b.say("%s: job %d", p.name, round)
		of := cost
		if round == 0 {
			of = cost.first
		}
		if err := p.job(ctx, of); err != nil {
			return err
		}
	}
	b.say("%s: the command line tool", p.name)
	for range b.herdRounds {
		if err := p.calm(ctx, b.say); err != nil {
			return err
		}
		took, err := p.cli(ctx, b.say)
		if err != nil {
			return err
		}
		cost.cli.add(took.Seconds())
	}
	s := p.herd.Stats()
	b.say("%s: %d sign-ins, %d retries, %d returns lost, %d unreadable, %d stale", p.name, s.SignIns, s.Retries, s.ReturnsLost, s.Unreadable, s.Stale)
	if err := s.Err(); err != nil && p.daemon != nil {
		return err
	}
	return nil
}

// profiles are those of all versions.
func profiles() (all []herd.Profile, err error) {
	for _, v := range lab.Versions {
		p, err := herd.ProfileOf(v)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// gatherWithin is how long a herd may take to sign in: a bare master lets in some two hundred a second.
const gatherWithin = 5 * time.Minute
