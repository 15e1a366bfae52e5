package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/lab"
)

// Goals of the part roots.
const (
	coldGoal      = 1.3    // of rsync, a tree to a node that has none
	unchangedGoal = 0.2    // of rsync, nothing to do
	editGoal      = 1000.0 // ms from an edit until it is on both other nodes
	pushGoal      = 0.5    // of rsync to both
	rootsMemGoal  = 150.0  // MiB above what the daemon has before a sync
)

// rootsSettings: so much at once is deleted here as nobody does.
var rootsSettings = lab.Settings{"log_level": "warning", "cluster_roots_max_delete": 100}

// roots measures file_roots against rsync.
func (b *bench) roots(ctx context.Context) error {
	rsync, err := findRsync()
	if err != nil {
		return err
	}
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: []string{lab.Versions[0], lab.Versions[0], lab.Versions[0]}, DaemonSettings: rootsSettings})
		if err != nil {
			return err
		}
		for _, n := range c.Nodes { // the demo's states are not part of it
			if err := emptyDir(n.Master.FileRoot()); err != nil {
				return err
			}
		}
		if err := c.Form(ctx); err != nil {
			return err
		}
		r := &rootsBench{bench: b, c: c, rsync: rsync}
		if err := r.startRsync(ctx); err != nil {
			return err
		}
		for _, t := range b.rootsTrees {
			for round := range b.roundsOf(t) {
				b.say("roots: %s, round %d of %d", t.name, round+1, b.roundsOf(t))
				if err := r.round(ctx, t, round); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
			r.done = append(r.done, r.cost)
			r.cost = rootsCost{}
		}
		r.report()
		return nil
	})
}

// roundsOf a tree; those which only show that size does no harm have few.
func (b *bench) roundsOf(t rootsTree) int {
	if t.edited {
		return b.rootsRounds
	}
	return min(b.rootsRounds, 2)
}

// rootsCost is one tree's figures.
type rootsCost struct {
	ours, theirs             series // s, to a node that has nothing
	oursOnDisk, theirsOnDisk series // s, the same until it is on the disk
	pushed                   series // s, from the first look at the disk until two nodes have it
	check, theirCheck        series // ms
	auto, push               series // ms, one file, to both
	theirPush, theirPushOnce series // ms; one node after the other, both at once
	receiver, sender         series // MiB above base
}

type rootsBench struct {
	*bench
	c     *lab.Cluster
	rsync string
	cost  rootsCost
	done  []rootsCost
}

// round brings one new tree to the nodes, in both ways.
func (r *rootsBench) round(ctx context.Context, t rootsTree, round int) error {
	author, fresh := r.c.Nodes[0], r.c.Nodes[1]
	if err := r.lay(ctx, t, round); err != nil {
		return err
	}
	if err := r.empty(ctx, fresh); err != nil {
		return err
	}
	sides := []func() error{
		func() error { return r.cold(ctx, author, fresh) },
		func() error {
			if err := emptyDir(filepath.Join(fresh.Dir(), copyDir)); err != nil {
				return err
			}
			return r.theirCold(ctx, author, fresh)
		},
	}
	if err := takeTurns(round, sides...); err != nil {
		return err
	}
	if err := sameTree(filepath.Join(fresh.Dir(), copyDir), fresh.Master.FileRoot()); err != nil {
		return err
	}
	if !t.edited {
		return nil
	}
	third := r.c.Nodes[2]
	if _, err := r.timed(ctx, third, r.rsync, "-a", "--delete", "rsync://"+author.Addr+":"+rsyncPort+"/plain/", filepath.Join(third.Dir(), copyDir)+"/"); err != nil {
		return err
	}
	for i := range r.rootsEdits {
		if err := takeTurns(i, func() error { return r.checks(ctx, fresh) }, func() error { return r.theirChecks(ctx, author, fresh) }); err != nil {
			return err
		}
		if err := takeTurns(i, func() error { return r.edits(ctx, t) }, func() error { return r.theirEdits(ctx, t) }); err != nil {
			return err
		}
	}
	return nil
}

// takeTurns lets each side be the first in every other round.
func takeTurns(round int, sides ...func() error) error {
	for i := range sides {
		if err := sides[(i+round)%len(sides)](); err != nil {
			return err
		}
	}
	return nil
}

// lay makes a new tree, once for rsync and once as the author's file_roots, and waits until all nodes have that.
func (r *rootsBench) lay(ctx context.Context, t rootsTree, round int) error {
	author := r.c.Nodes[0]
	plain, next := filepath.Join(author.Dir(), plainDir), filepath.Join(author.Dir(), "next")
	if err := errors.Join(emptyDir(plain), emptyDir(next)); err != nil {
		return err
	}
	if err := errors.Join(t.make(plain, round), t.make(next, round)); err != nil {
		return err
	}
	if err := emptyDir(author.Master.FileRoot()); err != nil {
		return err
	}
	if _, err := r.ctl(ctx, author, "sync_roots", "--force", "--yes"); err != nil {
		return err
	}
	unix.Sync()
	names, err := os.ReadDir(next)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := os.Rename(filepath.Join(next, n.Name()), filepath.Join(author.Master.FileRoot(), n.Name())); err != nil {
			return err
		}
	}
	took, err := r.ctl(ctx, author, "sync_roots", "--force", "--yes")
	r.cost.pushed.add(took.Seconds())
	return err
}

// empty makes a node one that has never had any of the tree, and has no directory for it yet.
func (r *rootsBench) empty(ctx context.Context, n *lab.Node) error {
	if err := n.Daemon.Stop(ctx); err != nil {
		return err
	}
	state := filepath.Join(n.Daemon.StateDir, "roots")
	// What leads nowhere keeps saltclusterd from making the directory by itself.
	if err := errors.Join(emptyDir(state), os.RemoveAll(n.Master.FileRoot()), os.Symlink("nowhere", n.Master.FileRoot())); err != nil {
		return err
	}
	if err := n.Daemon.Start(ctx); err != nil {
		return err
	}
	if err := errors.Join(n.Daemon.WaitReady(ctx, startWithin), n.Daemon.Serving(ctx, startWithin)); err != nil {
		return err
	}
	return r.c.Whole(ctx, startWithin)
}

// theirCold has rsync fetch everything, and then waits for the disk.
func (r *rootsBench) theirCold(ctx context.Context, from, to *lab.Node) error {
	if err := settle(); err != nil {
		return err
	}
	into := filepath.Join(to.Dir(), copyDir)
	took, err := r.timed(ctx, to, r.rsync, "-a", "rsync://"+from.Addr+":"+rsyncPort+"/plain/", into+"/")
	if err != nil {
		return err
	}
	r.cost.theirs.add(took.Seconds())
	flush, err := writeOut(into)
	if err != nil {
		return err
	}
	r.cost.theirsOnDisk.add((took + flush).Seconds())
	return nil
}

// writeOut waits until all that was written on a file system is on the disk.
func writeOut(dir string) (time.Duration, error) {
	d, err := os.Open(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	began := time.Now()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return 0, fmt.Errorf("write out %s: %w", dir, err)
	}
	return time.Since(began), nil
}

// cold has a node fetch everything, watches the memory of both ends, and then waits for the disk.
func (r *rootsBench) cold(ctx context.Context, from, to *lab.Node) error {
	if err := settle(); err != nil {
		return err
	}
	base := map[*lab.Node]float64{}
	for _, n := range []*lab.Node{from, to} {
		var err error
		if base[n], err = resetPeak(n.Daemon.PID()); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Remove(to.Master.FileRoot()), os.Mkdir(to.Master.FileRoot(), 0o755)); err != nil {
		return err
	}
	took, err := r.ctl(ctx, to, "sync_roots")
	if err != nil {
		return err
	}
	r.cost.ours.add(took.Seconds())
	flush, err := writeOut(to.Dir())
	if err != nil {
		return err
	}
	r.cost.oursOnDisk.add((took + flush).Seconds())
	for n, peak := range map[*lab.Node]*series{from: &r.cost.sender, to: &r.cost.receiver} {
		v, err := peakBytes(n.Daemon.PID())
		if err != nil {
			return err
		}
		peak.add((v - base[n]) / mib)
	}
	return nil
}

// ctl runs saltclusterctl, which ends when all nodes have what they shall.
func (r *rootsBench) ctl(ctx context.Context, n *lab.Node, args ...string) (time.Duration, error) {
	bin := r.bin
	if bin == "" {
		bin = filepath.Join(lab.ModuleRoot(), "bin")
	}
	return r.timed(ctx, n, append([]string{filepath.Join(bin, "saltclusterctl")}, args...)...)
}

func (r *rootsBench) report() {
	var rows, small [][]string
	for i, t := range r.rootsTrees {
		c := r.done[i]
		ratio := c.ours.over(c.theirs)
		target, verdict := "", ""
		if t.edited {
			target, verdict = fmt.Sprintf("≤ %.1f", coldGoal), atMost(ratio, coldGoal)
		}
		rows = append(rows, []string{
			t.name, c.theirs.show("%.2f"), c.ours.show("%.2f"), "**" + ratio.show("%.2f") + "**", target, verdict,
			c.theirsOnDisk.show("%.2f"), c.oursOnDisk.show("%.2f"), c.oursOnDisk.over(c.theirsOnDisk).show("%.2f"), c.pushed.show("%.2f"),
			c.receiver.show("%.0f"), c.sender.show("%.0f"), fmt.Sprintf("≤ %.0f", rootsMemGoal),
			strings.Join([]string{atMost(c.receiver, rootsMemGoal), atMost(c.sender, rootsMemGoal)}, ", "),
		})
		if !t.edited {
			continue
		}
		check, push := c.check.over(c.theirCheck), c.push.over(c.theirPush)
		small = append(small,
			[]string{t.name + ": ms, nothing has changed", c.theirCheck.show("%.0f"), c.check.show("%.0f"), "**" + check.show("%.2f") + "**", fmt.Sprintf("≤ %.1f", unchangedGoal), atMost(check, unchangedGoal)},
			[]string{"ms, one changed file to two nodes, pushed", c.theirPush.show("%.0f"), c.push.show("%.0f"), "**" + push.show("%.2f") + "**", fmt.Sprintf("≤ %.1f", pushGoal), atMost(push, pushGoal)},
			[]string{"– rsync to both nodes at once", c.theirPushOnce.show("%.0f"), "", c.push.over(c.theirPushOnce).show("%.2f"), "", ""},
			[]string{"ms, the same, found by itself", "–", c.auto.show("%.0f"), "", fmt.Sprintf("≤ %.0f ms", editGoal), atMost(c.auto, editGoal)},
		)
	}
	r.out.table("A tree to a node that has none of it", fmt.Sprintf(
		"Random bytes, which nothing packs. `saltclusterctl sync_roots` on the node against `rsync -a rsync://…` on the same node, over the same "+
			"veth; saltclusterd speaks TLS, and verifies each piece. On the disk: with a `sync` of the file system after either. Before each side what "+
			"is still to be written is written, and free memory touched, which the host of a virtual machine may have taken away. %d rounds, of the larger ones 2. "+
			"Memory: peak of the resident set above its size before, of the node that fetches and of the one that sends.", r.rootsRounds),
		[]string{
			"tree", "s rsync", "s sync_roots", "ratio", "target", "", "s rsync, on the disk", "s sync_roots, on the disk", "ratio", "s, pushed to two nodes, with the first look at the disk",
			"MiB, receiver", "MiB, sender", "target", "",
		}, rows)
	r.out.table("Roots that hardly change", fmt.Sprintf(
		"Commands from start to end; an edit is a rename over a file, and is there when both other nodes have the new content. %d in each of %d rounds.",
		r.rootsEdits, r.rootsRounds),
		[]string{"figure", "rsync", "saltclusterd", "ratio", "target", ""}, small)
}
