package main

import (
	"context"

	"saltclusterd/integration/lab"
)

// sides are a bare master and the same behind saltclusterd, in one lab so that they can take turns: what one has written and removed costs
// the other as much.
type sides struct{ bare, ours *pack }

// versus starts both, with herds of n that are subscribed and keys of fleet more.
func (b *bench) versus(ctx context.Context, version string, n, fleet int, f func(context.Context, sides) error) error {
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		var both [2]*pack
		for i, make := range packs {
			p, err := make(ctx, l, version, n, fleet)
			if err != nil {
				return err
			}
			defer p.close()
			if err := p.gather(ctx, b.say); err != nil {
				return err
			}
			both[i] = p
		}
		return f(ctx, sides{both[0], both[1]})
	})
}

// each does something with both.
func (s sides) each(f func(*pack) error) error {
	if err := f(s.bare); err != nil {
		return err
	}
	return f(s.ours)
}

// reqCost is what one side needs for one request, in ms of CPU.
type reqCost struct{ daemon, master, sum series }

// sideCosts are those of both.
type sideCosts struct{ bare, ours reqCost }

// of is one side's.
func (c *sideCosts) of(p *pack) *reqCost {
	if p.daemon == nil {
		return &c.bare
	}
	return &c.ours
}

// ratio is ours of bare, within each round.
func (c *sideCosts) ratio() series { return c.ours.sum.over(c.bare.sum) }

// takeTurns measures what one of count requests costs that act has minions make, round by round.
func (b *bench) takeTurns(s sides, what string, count func(*pack) int, act func(*pack) error) (cost sideCosts, err error) {
	for round := range b.sizes.rounds + 1 {
		err := s.each(func(p *pack) error {
			u, err := p.spend(func() error { return act(p) })
			if err != nil {
				return err
			}
			n := float64(count(p))
			daemon, master := millis(u.daemon)/n, millis(u.master)/n
			b.say("%s: %.2f ms of the master and %.2f of saltclusterd per %s, round %d", p.name, master, daemon, what, round)
			if round == 0 { // it has read much that the others have at hand
				return nil
			}
			c := cost.of(p)
			c.daemon.add(daemon)
			c.master.add(master)
			c.sum.add(daemon + master)
			return nil
		})
		if err != nil {
			return cost, err
		}
	}
	return cost, nil
}

// always is a count that is the same for both sides.
func always(n int) func(*pack) int { return func(*pack) int { return n } }
