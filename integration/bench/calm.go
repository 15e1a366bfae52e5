package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/integration/lab"
)

const (
	// calmWithin bounds the wait for a master to be calm; bareWithin all that a bare one is given.
	calmWithin = 8 * time.Minute
	bareWithin = 30 * time.Minute
	// A calm master answers so many probes, one after the other, each within calmAnswer.
	calmProbes = 3
	calmAnswer = time.Second
)

// calm waits until a master has done with what went before: all minions are subscribed, nobody signs in, and requests are answered at
// once. A bare master at its limits sends its minions into a storm of sign-ins with the first job, in which a second one would be lost.
func (p *pack) calm(ctx context.Context, say func(string, ...any)) error {
	began := time.Now()
	signIns := p.herd.Stats().SignIns
	err := lab.Eventually(ctx, calmWithin, "the master to be calm", func(ctx context.Context) error {
		for range calmProbes {
			s := p.herd.Stats()
			if s.Subscribed < s.Minions || s.SigningIn > 0 {
				return fmt.Errorf("%d of %d minions are subscribed, %d are signing in", s.Subscribed, s.Minions, s.SigningIn)
			}
			asked := time.Now()
			if _, err := p.herd.Send(ctx, 0, "_file_envs", nil); err != nil {
				return err
			}
			took := time.Since(asked)
			if took > calmAnswer {
				return fmt.Errorf("a request took %s", took.Round(10*time.Millisecond))
			}
			select {
			case <-time.After(calmAnswer - took):
			case <-ctx.Done():
			}
		}
		return ctx.Err()
	})
	if took := time.Since(began); took > calmProbes*calmAnswer*2 {
		say("%s: calm after %.0fs and %d sign-ins", p.name, took.Seconds(), p.herd.Stats().SignIns-signIns)
	}
	return err
}

// patiently measures a bare master, which may not be up to it: then it has what it had until then, and a note says so.
func (b *bench) patiently(ctx context.Context, p *pack, cost *jobCost) error {
	within, cancel := context.WithTimeout(ctx, bareWithin)
	defer cancel()
	err := b.measurePack(within, p, cost)
	if err == nil || ctx.Err() != nil {
		return err
	}
	b.say("%s: given up: %v", p.name, err)
	switch n := p.herd.Stats().Minions; {
	case len(cost.acked) > 0:
		cost.note = fmt.Sprintf("%s did not get through all of it (%v).", p.name, err)
	case cost.first != nil && len(cost.first.acked) > 0:
		cost.acked, cost.cached, cost.cpu, cost.herdCPU = cost.first.acked, cost.first.cached, cost.first.cpu, cost.first.herdCPU
		cost.note = fmt.Sprintf("%s took no second job of %d minions within %s; its first one is counted.", p.name, n, bareWithin)
	default:
		cost.note = fmt.Sprintf("%s did not get through one job of %d minions (%v).", p.name, n, err)
	}
	return nil
}
