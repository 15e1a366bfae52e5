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

// pack is a herd and the master it belongs to.
type pack struct {
	*target
	herd   *herd.Herd
	salt   *lab.Master
	dialer *lab.Dialer
	daemon *lab.Daemon // nil: bare
}

// newPack lays out a master and a herd of n that knows its address, and accepts their keys and those of fleet more. Nothing is started. A lab
// may have one of each kind.
func newPack(ctx context.Context, l *lab.Lab, version string, n, fleet int, bare bool) (*pack, error) {
	name := "salt"
	if bare {
		name = "bare"
	}
	h, err := l.Host(ctx, name)
	if err != nil {
		return nil, err
	}
	from, err := l.Host(ctx, loadHost)
	if err != nil {
		return nil, err
	}
	p := &pack{target: &target{name: version + " behind saltclusterd", from: from}}
	listen := h.Local
	if bare {
		p.name, listen = version+" alone", h.Addr
	}
	if p.salt, err = h.NewMaster(version, listen); err != nil {
		return nil, err
	}
	p.target.master = p.salt.Process
	if p.dialer, err = from.NewDialer(); err != nil {
		return nil, err
	}
	all, err := profiles()
	if err != nil {
		return nil, err
	}
	p.herd, err = herd.New(herd.Config{Host: h.Addr, Dial: p.dialer.Dial, Profiles: all, Minions: n, KeepRequests: true})
	if err != nil {
		return nil, err
	}
	ids := p.herd.IDs()
	for i := range fleet {
		ids = append(ids, fmt.Sprintf("idle%d", i))
	}
	return p, herd.Accept(filepath.Join(p.salt.PKIDir(), "minions"), p.herd.Key(), ids...)
}

func barePack(ctx context.Context, l *lab.Lab, version string, n, fleet int) (*pack, error) {
	p, err := newPack(ctx, l, version, n, fleet, true)
	if err != nil {
		return nil, err
	}
	return p, p.startMaster(ctx)
}

func (p *pack) startMaster(ctx context.Context) error {
	if err := p.salt.Start(ctx); err != nil {
		return err
	}
	return p.salt.WaitReady(ctx, startWithin)
}

func clusterPack(ctx context.Context, l *lab.Lab, version string, n, fleet int) (*pack, error) {
	p, err := newPack(ctx, l, version, n, fleet, false)
	if err != nil {
		return nil, err
	}
	if p.daemon, err = p.salt.NewDaemon(quiet); err != nil {
		return nil, err
	}
	p.target.daemon = p.daemon.Process
	if err := p.startMaster(ctx); err != nil {
		return nil, err
	}
	return p, found(ctx, p.daemon)
}

func (p *pack) close() {
	_ = p.herd.Close()
	p.dialer.Close()
}

// gather waits until the herd is subscribed.
func (p *pack) gather(ctx context.Context, say func(string, ...any)) error {
	say("%s: %d minions sign in", p.name, p.herd.Stats().Minions)
	began := time.Now()
	p.herd.Open(ctx)
	err := lab.Eventually(ctx, gatherWithin, "the herd to be subscribed", func(context.Context) error {
		if s := p.herd.Stats(); s.Subscribed < s.Minions {
			return fmt.Errorf("%d of %d are, %w", s.Subscribed, s.Minions, s.Err())
		}
		return nil
	})
	say("%s: subscribed after %.1fs", p.name, time.Since(began).Seconds())
	return err
}

// jobWithin bounds one job; a bare master needs more than a minute for 5,000 returns, and then those that were sent again.
const jobWithin = 4 * time.Minute

// job publishes one and waits until the job cache has all returns.
func (p *pack) job(ctx context.Context, cost *jobCost) error {
	n := p.herd.Stats().Minions
	own, err := herd.CPU()
	if err != nil {
		return err
	}
	var job herd.Job
	var cached time.Duration
	u, err := p.spend(func() error {
		jid, err := p.publishPatiently(ctx)
		if err == nil {
			job, cached, err = p.await(ctx, jid)
		}
		return err
	})
	if err != nil {
		return err
	}
	ownAfter, err := herd.CPU()
	cost.acked.add(job.LastEnd.Sub(job.FirstHeard).Seconds())
	cost.lost.add(float64(job.ReturnsLost))
	cost.cached.add(cached.Seconds())
	cost.cpu.add(millis(u.sum()) / float64(n))
	cost.herdCPU.add(millis(ownAfter-own) / float64(n))
	return err
}

const lookEvery = 50 * time.Millisecond

// await waits until every return has been acknowledged or given up, and the job cache has all; that took cached from when the first minion
// heard the job.
func (p *pack) await(ctx context.Context, jid string) (job herd.Job, cached time.Duration, err error) {
	n, dir := p.herd.Stats().Minions, p.jobDir(jid)
	ctx, cancel := context.WithTimeout(ctx, jobWithin)
	defer cancel()
	for looks := 0; ; looks++ {
		job = p.herd.Job(jid)
		missing := errors.New("not looked for in the job cache yet")
		// Looking costs a little, so not from the start; but a bare master may never acknowledge what it keeps.
		if cached == 0 && (job.Acked > n*9/10 || looks%20 == 19) {
			if missing = whole(dir, n); missing == nil {
				cached = time.Since(job.FirstHeard)
			}
		}
		if cached > 0 && job.Heard == n && job.Acked+job.ReturnsLost >= n {
			return job, cached, nil
		}
		select {
		case <-time.After(lookEvery):
		case <-ctx.Done():
			return job, cached, fmt.Errorf("%d of %d have heard %s, %d returns acknowledged, %d lost: %w: %w",
				job.Heard, n, jid, job.Acked, job.ReturnsLost, missing, context.Cause(ctx))
		}
	}
}

// publishPatiently is publish; a bare master that still works through what was sent to it again is asked until it has time for a job.
func (p *pack) publishPatiently(ctx context.Context) (jid string, err error) {
	if p.daemon != nil {
		return p.publish(ctx)
	}
	err = lab.Eventually(ctx, jobWithin, "the master to take a job", func(ctx context.Context) (err error) {
		jid, err = p.publish(ctx)
		return err
	})
	return jid, err
}

// publish publishes test.ping to all and returns the jid.
func (p *pack) publish(ctx context.Context) (string, error) { return p.publishTo(ctx, "*") }

func (p *pack) publishTo(ctx context.Context, target string) (string, error) {
	res, err := p.salt.Run(ctx, "salt", "--async", target, "test.ping")
	if err == nil {
		err = res.Err()
	}
	f := strings.Fields(res.Stdout)
	if err == nil && len(f) == 0 {
		err = errors.New("salt --async printed no jid: " + res.Output())
	}
	if err != nil {
		return "", err
	}
	return f[len(f)-1], nil
}

// jobDir is where the stock job cache keeps a job (hash_type sha256).
func (p *pack) jobDir(jid string) string {
	sum := sha256.Sum256([]byte(jid))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(p.salt.CacheDir(), "jobs", name[:2], name[2:])
}

// whole returns nil when the job's directory has the returns of n minions.
func whole(dir string, n int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	have := 0
	for _, e := range entries {
		if e.IsDir() {
			if _, err := os.Stat(filepath.Join(dir, e.Name(), "return.p")); err == nil {
				have++
			}
		}
	}
	if have < n {
		return fmt.Errorf("%d of %d returns are in the job cache", have, n)
	}
	return nil
}

// cliPatience is the timeout the command line tool gets: it must not give up on a bare master and ask again, which would take longer.
const cliPatience = 180 * time.Second

// cli runs salt as an operator does, and of ours wants every answer.
func (p *pack) cli(ctx context.Context, say func(string, ...any)) (time.Duration, error) {
	res, err := p.salt.Run(ctx, "salt", "-t", fmt.Sprint(int(cliPatience.Seconds())), "--out=txt", "*", "test.ping")
	if err != nil {
		return 0, err
	}
	n := p.herd.Stats().Minions
	got := strings.Count(res.Stdout, ": True")
	if got < n && p.daemon != nil {
		return 0, fmt.Errorf("%s: salt printed %d of %d answers", p.name, got, n)
	}
	if got < n {
		say("%s: salt printed %d of %d answers", p.name, got, n)
	}
	return res.Took, nil
}
