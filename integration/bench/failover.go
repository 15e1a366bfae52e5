package main

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

const (
	failoverGoal = 15.0 // s until every minion of a killed node is served again
	failWithin   = time.Minute
)

// failover kills saltclusterd of one of three nodes behind HAProxy, in turn, and waits until a herd is whole again.
func (b *bench) failover(ctx context.Context) error {
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		c, h, err := b.herdCluster(ctx, l, nil, nil)
		if err != nil {
			return err
		}
		defer h.Close()
		var served, signIns, slowest, failed series
		for i := range b.kills {
			n := c.Nodes[i%len(c.Nodes)]
			b.say("kill -9 saltclusterd of %s, with %d minions connected to three nodes", n.Name, b.herd)
			h.Reset()
			before := h.Stats()
			if err := n.Daemon.Kill(); err != nil {
				return err
			}
			killed := time.Now()
			within, cancel := context.WithTimeout(ctx, failWithin)
			s, err := h.AwaitServed(within, before)
			cancel()
			if err != nil {
				return err
			}
			served.add(s.LastServed.Sub(killed).Seconds())
			signIns.add(float64(s.SignIns - before.SignIns))
			slowest.add(herd.Quantile(s.SignInTimes, 1).Seconds())
			failed.add(float64(s.SignInFailed - before.SignInFailed))
			if err := n.Daemon.Start(ctx); err != nil {
				return err
			}
			if err := c.Whole(ctx, startWithin); err != nil {
				return err
			}
		}
		b.out.table(fmt.Sprintf("A node of three is killed, %d minions", b.herd),
			"`kill -9` of saltclusterd behind a real HAProxy; a third of the minions lose their connections. They come back as stock minions do: "+
				"after a random time of 1 to 10 s (3006), or at once with a new sign-in (3007, 3008).",
			[]string{"figure", "value", "target", ""}, [][]string{
				{"s until the last minion is served again", served.show("%.1f"), fmt.Sprintf("≤ %.0f", failoverGoal), atMost(served, failoverGoal)},
				{"sign-ins", signIns.show("%.0f"), "", ""},
				{"s, slowest sign-in", slowest.show("%.1f"), "", ""},
				{"minions that failed to sign in", failed.show("%.0f"), "0", atMost(failed, 0)},
			})
		return nil
	})
}

// herdCluster is three nodes behind HAProxy with a herd that knows only that; over are settings of saltclusterd, masters of the masters.
func (b *bench) herdCluster(ctx context.Context, l *lab.Lab, over, masters lab.Settings) (*lab.Cluster, *herd.Herd, error) {
	settings := maps.Clone(quiet)
	maps.Copy(settings, over)
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions, MasterSettings: masters, DaemonSettings: settings, LBPerPort: true})
	if err != nil {
		return nil, nil, err
	}
	from, err := l.Host(ctx, loadHost)
	if err != nil {
		return nil, nil, err
	}
	d, err := from.NewDialer()
	if err != nil {
		return nil, nil, err
	}
	all, err := profiles()
	if err != nil {
		return nil, nil, err
	}
	h, err := herd.New(herd.Config{
		Host: c.LB.Host().Addr, Dial: d.Dial, Profiles: all, Minions: b.herd, KeepRequests: true, Announce: true,
	})
	if err != nil {
		return nil, nil, err
	}
	if err := herd.Accept(filepath.Join(c.Nodes[0].Master.PKIDir(), "minions"), h.Key(), h.IDs()...); err != nil {
		return nil, nil, err
	}
	b.say("three nodes behind HAProxy, %d minions", b.herd)
	if err := c.Form(ctx); err != nil {
		return nil, nil, err
	}
	if err := c.StartEdge(ctx); err != nil {
		return nil, nil, err
	}
	p := &pack{target: &target{name: "the cluster"}, herd: h}
	return c, h, p.gather(ctx, b.say)
}
