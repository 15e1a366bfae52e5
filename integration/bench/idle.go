package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"saltclusterd/integration/lab"
)

const (
	wakeupsGoal = 150.0 // per second, of saltclusterd of an idle node
	idleCPUGoal = 0.7   // % of a core
)

// idleUse is what processes of one kind use while nothing happens.
type idleUse struct{ wakeups, cpu series }

// idle measures three nodes with six real minions that have nothing to do, and the stock masters beside them.
func (b *bench) idle(ctx context.Context) error {
	settle, long := pick(b, time.Minute, 15*time.Second), pick(b, 30*time.Second, 10*time.Second)
	use := map[string]*idleUse{}
	err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		spec := lab.DefaultCluster()
		spec.DaemonSettings = quiet
		c, err := l.NewCluster(ctx, spec)
		if err != nil {
			return err
		}
		if err := c.Up(ctx); err != nil {
			return err
		}
		b.say("three nodes with %d minions come to rest", len(c.Minions))
		if err := sleep(ctx, settle); err != nil {
			return err
		}
		for round := range b.rounds {
			b.say("idle, round %d", round+1)
			if err := idleRound(ctx, c, long, use); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var rows [][]string
	for _, role := range []string{"leader", "follower"} {
		ours, masters := use[role], use[role+", master"]
		rows = append(rows,
			append([]string{role + ": wake-ups/s", masters.wakeups.show("%.0f"), ours.wakeups.bold("%.0f"),
				ours.wakeups.over(masters.wakeups).show("%.2f")}, judged(ours.wakeups, "%.0f", wakeupsGoal)...),
			append([]string{role + ": CPU, % of a core", masters.cpu.show("%.2f"), ours.cpu.bold("%.2f"),
				ours.cpu.over(masters.cpu).show("%.2f")}, judged(ours.cpu, "%.1f", idleCPUGoal)...))
	}
	b.table("Idle nodes", fmt.Sprintf(
		"Three nodes (%s, %s and %s) with two real minions of each version and nothing to do, for %s per round. Wake-ups are "+
			"context switches of all threads, voluntary or not. The master's are those of all its processes.",
		lab.Versions[0], lab.Versions[1], lab.Versions[2], long),
		[]string{"figure", "stock master", "saltclusterd", "ratio", "target", ""}, rows)
	return nil
}

// idleRound adds what each node uses meanwhile to the figures of its role.
func idleRound(ctx context.Context, c *lab.Cluster, long time.Duration, use map[string]*idleUse) error {
	members, err := c.Nodes[0].Daemon.Members(ctx)
	if err != nil {
		return err
	}
	role := map[string]string{}
	for _, m := range members.Members {
		if role[m.ID] = "follower"; m.Leader {
			role[m.ID] = "leader"
		}
	}
	type watched struct {
		role string
		p    *lab.Process
		was  map[int]threads
	}
	var all []watched
	for _, n := range c.Nodes {
		all = append(all, watched{role: role[n.Name], p: n.Daemon.Process},
			watched{role: role[n.Name] + ", master", p: n.Master.Process})
	}
	for i := range all {
		if all[i].was, err = watch(all[i].p); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := sleep(ctx, long); err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	for _, w := range all {
		now, err := watch(w.p)
		if err != nil {
			return err
		}
		if use[w.role] == nil {
			use[w.role] = &idleUse{}
		}
		var wakeups float64
		var cpu time.Duration
		for pid, t := range now {
			cpu += t.cpu - w.was[pid].cpu
			for tid, n := range t.switches {
				wakeups += n - w.was[pid].switches[tid]
			}
		}
		use[w.role].wakeups.add(wakeups / seconds)
		use[w.role].cpu.add(100 * cpu.Seconds() / seconds)
	}
	return nil
}

// threads is what a process has used so far: CPU, and context switches of each thread.
type threads struct {
	cpu      time.Duration
	switches map[int]float64
}

// watch reads a process of the lab and everything below its supervisor, without the supervisor.
func watch(p *lab.Process) (map[int]threads, error) {
	below, err := tree(p)
	if err != nil {
		return nil, err
	}
	main, err := readStat(p.PID())
	if err != nil {
		return nil, err
	}
	delete(below, main.parent)
	all := map[int]threads{}
	for pid, s := range below {
		dir := fmt.Sprintf("/proc/%d/task", pid)
		tids, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		t := threads{s.cpu, map[int]float64{}}
		for _, e := range tids {
			n, err := statusOf(dir+"/"+e.Name()+"/status", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
			if tid, bad := strconv.Atoi(e.Name()); err == nil && bad == nil { // else just ended
				t.switches[tid] = n
			}
		}
		all[pid] = t
	}
	return all, nil
}
