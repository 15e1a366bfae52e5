package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/integration/lab"
)

const (
	replicasGoal = 1.25 // CPU of all nodes, against jobs that stay on one
	// afterJob is when everything about a job is done: the comparison of replicas comes seconds after the last return.
	afterJob = 10 * time.Second
)

// replicas measures what it costs that every node has a job.
func (b *bench) replicas(ctx context.Context) error {
	var alone, all, late series
	for _, n := range []int{1, 3} {
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			c, h, err := b.herdCluster(ctx, l, lab.Settings{"cluster_job_replicas": n}, nil)
			if err != nil {
				return err
			}
			defer h.Close()
			p := &pack{target: &target{name: fmt.Sprint(n, " replicas")}, herd: h, salt: c.Nodes[0].Master}
			for round := range b.herdRounds + 2 {
				b.say("%d replicas: job %d", n, round)
				cpu, last, err := b.replicated(ctx, c, p, n)
				if err != nil {
					return err
				}
				switch {
				case round == 0:
				case n == 1:
					alone.add(cpu)
				default:
					all.add(cpu)
					late.add(last.Seconds())
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	ratio := overall(all, alone)
	b.out.table(fmt.Sprintf("Jobs on three nodes, %d minions", b.herd), fmt.Sprintf(
		"test.ping from one of three nodes behind HAProxy, `cluster_job_replicas: 1` and 3. CPU milliseconds per minion of all masters and "+
			"saltclusterd, until %.0f s after the last return.", afterJob.Seconds()),
		[]string{"figure", "1", "3", "ratio", "target", ""}, [][]string{
			{
				"CPU ms per minion, all nodes", alone.show("%.2f"), all.show("%.2f"), "**" + ratio.show("%.3f") + "**",
				fmt.Sprintf("≤ %.2f", replicasGoal), atMost(ratio, replicasGoal),
			},
			{"s, publisher has all until the others have", "–", late.show("%.2f"), "", "", ""},
		})
	return nil
}

// replicated publishes a job and waits until all nodes have what they shall; late is how much later than the publisher the
// last one had it.
func (b *bench) replicated(ctx context.Context, c *lab.Cluster, p *pack, replicas int) (ms float64, late time.Duration, err error) {
	before, err := clusterCPU(c)
	if err != nil {
		return 0, 0, err
	}
	jid, err := p.publish(ctx)
	if err != nil {
		return 0, 0, err
	}
	if _, _, err = p.await(ctx, jid); err != nil {
		return 0, 0, err
	}
	there, minions := time.Now(), p.herd.Stats().Minions
	for _, n := range c.Nodes[1:replicas] {
		other := &pack{salt: n.Master}
		err := lab.Eventually(ctx, jobWithin, jid+" on "+n.Name, func(context.Context) error { return whole(other.jobDir(jid), minions) })
		if err != nil {
			return 0, 0, err
		}
	}
	late = time.Since(there)
	select {
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	case <-time.After(afterJob):
	}
	after, err := clusterCPU(c)
	return millis(after-before) / float64(minions), late, err
}

// clusterCPU is what all nodes have used so far.
func clusterCPU(c *lab.Cluster) (sum time.Duration, err error) {
	all, err := clusterUsed(c)
	for _, u := range all {
		sum += u.sum()
	}
	return sum, err
}
