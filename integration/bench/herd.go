package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

const (
	gatherWithin = 5 * time.Minute // a bare master lets in some two hundred a second
	jobWithin    = 4 * time.Minute // a bare master needs more than a minute for 5,000 returns
	herdWithin   = 30 * time.Minute
	pollEvery    = 50 * time.Millisecond
	cliTimeout   = 180 * time.Second // the command line tool must not give up on a bare master and ask again

	// A calm master answers so many requests, one after the other, each within calmAnswer.
	calmWithin = 8 * time.Minute
	calmProbes = 3
	calmAnswer = time.Second
)

// herdGoals are at most so much of the bare master, by number of minions; 0: none. With few minions the command line
// tool's own start is most of its time.
func herdGoals(minions int) (job, cli float64) {
	if minions >= 5000 {
		return 0.1, 0.3
	}
	return 0.25, 0
}

// pack is a herd and the master it belongs to.
type pack struct {
	*target
	herd *herd.Herd
}

// jobCost is what a side needs for a job.
type jobCost struct{ acked, lost, cached, cli, cpu series }

// herds measures jobs of many minions, alone and behind saltclusterd.
func (b *bench) herds(ctx context.Context) error {
	var rows [][]string
	for _, version := range versions {
		var sides [2]jobCost
		for i := range sides {
			err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
				err := b.herdOf(ctx, l, version, i == 0, &sides[i])
				if i == 0 && len(sides[0].cached) > 0 && err != nil { // a large herd is too much for it
					b.say("%s alone did not get through all of it: %v", version, err)
					return ctx.Err()
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		bare, ours := sides[0], sides[1]
		job, cli := herdGoals(b.herd)
		row := func(what string, bare, ours series, goal float64, format string) {
			ratio := ours.times(1 / bare.median()) // sides do not take turns
			verdict := []string{"", ""}
			if goal > 0 {
				verdict = judged(ratio, "%.2f", goal)
			}
			shown := "–"
			if bare.median() > 0 {
				shown = ratio.bold("%.3f")
			}
			rows = append(rows, append([]string{version, what, bare.show(format), ours.show(format), shown}, verdict...))
		}
		row("returns given up by their minions", bare.lost, ours.lost, 0, "%.0f")
		row("s, until all returns are acknowledged or given up", bare.acked, ours.acked, job, "%.2f")
		row("s, until the job cache has all returns", bare.cached, ours.cached, job, "%.2f")
		row("s, the command line tool", bare.cli, ours.cli, cli, "%.1f")
		row("CPU ms per minion, master and saltclusterd", bare.cpu, ours.cpu, 0, "%.2f")
	}
	b.table(fmt.Sprintf("test.ping of %d minions", b.herd), fmt.Sprintf(
		"The job is published with `salt --async`. %d played minions of 3006, 3007 and 3008, which behave as stock ones do, "+
			"answer at once. Both times start when the first minion has the job. One ends when the last return is acknowledged, "+
			"or given up after three tries; the other when the job cache has all returns. The command line tool is "+
			"`salt -t %d '*' test.ping`, from start to exit. The sides run one after the other, so a ratio is a figure of ours "+
			"divided by the median of the master alone. Each job starts once all minions are subscribed, none is signing in, "+
			"and %d requests were answered within %s each.",
		b.herd, int(cliTimeout.Seconds()), calmProbes, calmAnswer),
		[]string{"Salt", "figure", "master alone", "behind saltclusterd", "ratio", "target", ""}, rows)
	return nil
}

// herdOf measures one side. The first job does not count.
func (b *bench) herdOf(ctx context.Context, l *lab.Lab, version string, alone bool, c *jobCost) error {
	ctx, cancel := context.WithTimeout(ctx, herdWithin)
	defer cancel()
	p, err := b.newPack(ctx, l, version, alone)
	if err != nil {
		return err
	}
	defer p.herd.Close()
	var warm jobCost
	for round := range min(b.rounds, pick(b, 2, 1)) + 1 {
		if err := p.calm(ctx); err != nil {
			return err
		}
		b.say("%s: job %d", p.name, round)
		to := c
		if round == 0 {
			to = &warm
		}
		if err := p.job(ctx, to); err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		if err := p.calm(ctx); err != nil {
			return err
		}
		res, err := p.salt.Run(ctx, "salt", "-t", fmt.Sprint(int(cliTimeout.Seconds())), "--out=txt", "*", "test.ping")
		if err != nil {
			return err
		}
		if got := strings.Count(res.Stdout, ": True"); got < b.herd {
			b.say("%s: salt printed %d of %d answers", p.name, got, b.herd)
			if p.daemon != nil {
				return fmt.Errorf("%s: answers are missing", p.name)
			}
		}
		c.cli.add(res.Took.Seconds())
	}
	if p.daemon == nil {
		return nil
	}
	return p.herd.Stats().Err()
}

// newPack starts a master with the accepted keys of a herd, and waits until the herd is subscribed.
func (b *bench) newPack(ctx context.Context, l *lab.Lab, version string, alone bool) (*pack, error) {
	t, err := newTarget(ctx, l, version, alone)
	if err != nil {
		return nil, err
	}
	d, err := t.from.NewDialer()
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, d.Close)
	var all []herd.Profile
	for _, v := range lab.Versions {
		p, err := herd.ProfileOf(v)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	h, err := herd.New(herd.Config{Host: t.host.Addr, Dial: d.Dial, Profiles: all, Minions: b.herd, KeepRequests: true})
	if err != nil {
		return nil, err
	}
	if err := t.accept(h.Key(), h.IDs()...); err != nil {
		return nil, err
	}
	if err := t.start(ctx, true); err != nil {
		return nil, err
	}
	b.say("%s: %d minions sign in", t.name, b.herd)
	h.Open(ctx)
	return &pack{t, h}, lab.Eventually(ctx, gatherWithin, "the herd to be subscribed", func(context.Context) error {
		if s := h.Stats(); s.Subscribed < s.Minions {
			return fmt.Errorf("%d of %d are, %w", s.Subscribed, s.Minions, s.Err())
		}
		return nil
	})
}

// calm waits until a master has finished what went before. A bare master at its limits sends its minions into a storm
// of sign-ins with the first job, in which a second one would be lost.
func (p *pack) calm(ctx context.Context) error {
	return lab.Eventually(ctx, calmWithin, "the master to be calm", func(ctx context.Context) error {
		for range calmProbes {
			s := p.herd.Stats()
			if s.Subscribed < s.Minions || s.SigningIn > 0 {
				return fmt.Errorf("%d of %d minions are subscribed, %d are signing in", s.Subscribed, s.Minions, s.SigningIn)
			}
			asked := time.Now()
			if _, err := p.herd.Send(ctx, 0, "_file_envs", nil); err != nil {
				return err
			}
			if took := time.Since(asked); took > calmAnswer {
				return fmt.Errorf("a request took %s", took.Round(10*time.Millisecond))
			}
			if err := sleep(ctx, calmAnswer); err != nil {
				return err
			}
		}
		return nil
	})
}

// job publishes one and waits until every return is acknowledged or given up, and the job cache has all.
func (p *pack) job(ctx context.Context, c *jobCost) error {
	n := p.herd.Stats().Minions
	var job herd.Job
	var cached time.Duration
	u, err := p.spend(func() (err error) {
		job, cached, err = p.publish(ctx, n)
		return err
	})
	if err != nil {
		return err
	}
	c.acked.add(job.LastEnd.Sub(job.FirstHeard).Seconds())
	c.lost.add(float64(job.ReturnsLost))
	c.cached.add(cached.Seconds())
	c.cpu.add(millis(u.daemon+u.master) / float64(n))
	return nil
}

// publish returns what became of a job, and how long the job cache took from the first minion that had it.
func (p *pack) publish(ctx context.Context, n int) (job herd.Job, cached time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, jobWithin)
	defer cancel()
	res, err := p.salt.Run(ctx, "salt", "--async", "*", "test.ping")
	if err == nil {
		err = res.Err()
	}
	f := strings.Fields(res.Stdout)
	if err == nil && len(f) == 0 {
		err = errors.New("salt --async printed no jid: " + res.Output())
	}
	if err != nil {
		return job, 0, err
	}
	jid := f[len(f)-1]
	sum := sha256.Sum256([]byte(jid)) // hash_type
	name := hex.EncodeToString(sum[:])
	dir := filepath.Join(p.salt.CacheDir(), "jobs", name[:2], name[2:])
	have := 0
	for polls := 0; ; polls++ {
		job = p.herd.Job(jid)
		// Reading the job cache costs a little, so not from the start; but a bare master may never acknowledge what it keeps.
		if cached == 0 && (job.Acked > n*9/10 || polls%20 == 19) {
			if have = returns(dir); have >= n {
				cached = time.Since(job.FirstHeard)
			}
		}
		if cached > 0 && job.Heard == n && job.Acked+job.ReturnsLost >= n {
			return job, cached, nil
		}
		if err := sleep(ctx, pollEvery); err != nil {
			return job, cached, fmt.Errorf("%d of %d have heard %s, %d returns acknowledged, %d lost, %d cached: %w",
				job.Heard, n, jid, job.Acked, job.ReturnsLost, have, err)
		}
	}
}

// returns counts those in a job's directory.
func returns(dir string) (n int) {
	entries, _ := os.ReadDir(dir) // is made with the first one
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(dir, e.Name(), "return.p")); err == nil {
			n++
		}
	}
	return n
}
