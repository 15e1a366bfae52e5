package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

// clusterSignIn is what sign-ins through one node of three were like.
type clusterSignIn struct {
	asked, others series // CPU of its saltclusterd, and of the others', ms per sign-in
	masters       series // CPU of all masters
	rate          series // per second
}

// signInsOfCluster measures what sign-ins cost nodes that have to hear from each other whether a key still counts.
func (b *bench) signInsOfCluster(ctx context.Context) error {
	minions, err := newMinions(b.minions)
	if err != nil {
		return err
	}
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions, DaemonSettings: quiet})
		if err != nil {
			return err
		}
		if err := accept(c.Nodes[0].Master, minions, b.fleet); err != nil {
			return err
		}
		b.say("three nodes, %d accepted keys", b.minions+b.fleet)
		if err := c.Form(ctx); err != nil {
			return err
		}
		from, err := l.Host(ctx, loadHost)
		if err != nil {
			return err
		}
		var rows [][]string
		for _, n := range c.Nodes {
			t := &target{name: n.Name, addr: n.Host.Addr + ":4506", from: from, daemon: n.Daemon.Process, master: n.Master.Process, socket: n.Daemon.Socket}
			if err := t.enroll(ctx, minions); err != nil {
				return err
			}
			s, err := b.signInsThrough(ctx, c, t, minions)
			if err != nil {
				return err
			}
			rows = append(rows, []string{
				n.Name + ", " + n.Master.Version, s.asked.show("%.2f"), s.others.show("%.2f"), s.masters.show("%.2f"), s.rate.show("%.0f"),
			})
		}
		b.out.table("Sign-ins through one of three nodes", fmt.Sprintf(
			"CPU milliseconds per sign-in. %d sign-ins in each round, %d at a time; the first node founded the cluster and leads it. Before it answers, a node hears "+
				"from the leader, and the leader from a majority, what has become of keys; sign-ins that wait hear it together.", b.signIns, atATime),
			[]string{"through", "its saltclusterd", "the other two", "all masters", "sign-ins/s"}, rows)
		return nil
	})
}

func (b *bench) signInsThrough(ctx context.Context, c *lab.Cluster, t *target, minions []*herd.Identity) (s clusterSignIn, err error) {
	for round := range b.sizes.rounds + 1 {
		b.say("sign-ins through %s, round %d", t.name, round)
		all, err := t.prepare(minions, b.signIns)
		if err != nil {
			return s, err
		}
		before, err := clusterUsed(c)
		if err != nil {
			return s, err
		}
		began := time.Now()
		if err := t.signIns(ctx, all, atATime); err != nil {
			return s, err
		}
		took := time.Since(began)
		sleep(ctx, afterwards)
		after, err := clusterUsed(c)
		if err != nil {
			return s, err
		}
		if round == 0 { // warms up
			continue
		}
		var asked, others, masters time.Duration
		for i, n := range c.Nodes {
			u := after[i].minus(before[i])
			masters += u.master
			if n.Name == t.name {
				asked = u.daemon
			} else {
				others += u.daemon
			}
		}
		n := float64(b.signIns)
		s.asked.add(millis(asked) / n)
		s.others.add(millis(others) / n)
		s.masters.add(millis(masters) / n)
		s.rate.add(n / took.Seconds())
	}
	return s, nil
}

// clusterUsed is what each node has used so far.
func clusterUsed(c *lab.Cluster) ([]used, error) {
	all := make([]used, len(c.Nodes))
	for i, n := range c.Nodes {
		var err error
		if all[i], err = (&target{daemon: n.Daemon.Process, master: n.Master.Process}).cpu(); err != nil {
			return nil, err
		}
	}
	return all, nil
}
