package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/lab"
)

const (
	coldGoal      = 1.3    // of rsync, a tree to a node that has none
	unchangedGoal = 0.2    // of rsync, nothing to do
	editGoal      = 1000.0 // ms from an edit until it is on both other nodes
	pushGoal      = 0.5    // of rsync to both
	rootsMemGoal  = 150.0  // MiB above what the daemon has before a sync

	port       = "8730"  // of rsync
	plainDir   = "plain" // the tree that rsync reads
	copyDir    = "copy"  // and where it brings it
	editWithin = time.Minute
)

// rootsSettings: the parts delete more at once than an operator does.
var rootsSettings = lab.Settings{"log_level": "warning", "cluster_roots_max_delete": 100}

// rootsCost is one tree's figures.
type rootsCost struct {
	ours, theirs      series // s, to a node that has nothing
	check, theirCheck series // ms
	auto              series // ms, one file, until both others have it
	push, theirPush   series // ms, one file pushed to both
	receiver, sender  series // MiB above base
}

type rootsBench struct {
	*bench
	c    *lab.Cluster
	cost rootsCost
}

// roots measures file_roots against rsync.
func (b *bench) roots(ctx context.Context) error {
	trees := []rootsTree{{"5,000 files, 200 MB", 5000, 40_000, true}}
	trees = pick(b, append(trees, rootsTree{"20,000 files, 20 MB", 20_000, 1000, false},
		rootsTree{"50,000 files, 100 MB", 50_000, 2000, false}, rootsTree{"one file of 2 GiB", 1, 2 << 30, false}), trees)
	var large, small [][]string
	err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		v := lab.Versions[0]
		c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: []string{v, v, v}, DaemonSettings: rootsSettings})
		if err != nil {
			return err
		}
		for _, n := range c.Nodes { // without the demo's states
			if err := emptyDir(n.Master.FileRoot()); err != nil {
				return err
			}
		}
		if err := c.Form(ctx); err != nil {
			return err
		}
		r := &rootsBench{bench: b, c: c}
		if err := r.startRsync(ctx); err != nil {
			return err
		}
		for _, t := range trees {
			r.cost = rootsCost{}
			rounds := b.rounds
			if !t.edited { // only shows that size does no harm
				rounds = min(rounds, 2)
			}
			for round := range rounds {
				b.say("roots: %s, round %d of %d", t.name, round+1, rounds)
				if err := r.round(ctx, t, round); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
			more, edits := r.rows(t)
			large, small = append(large, more), append(small, edits...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.table("A tree to a node that has none of it", fmt.Sprintf(
		"The files are random bytes, which do not compress. `saltclusterctl sync_roots` on a node is compared with "+
			"`rsync -a rsync://…` on the same node, over the same veth. saltclusterd uses TLS and verifies each piece. Before "+
			"each side runs, pending writes are flushed and free memory is touched. The first tree takes %d rounds, the others "+
			"at most 2. Memory is the peak resident set minus its size before, on the receiving and on the sending node.", b.rounds),
		[]string{
			"tree", "s rsync", "s sync_roots", "ratio", "target", "", "MiB, receiver", "MiB, sender", "target", "",
		}, large)
	b.table("Roots that hardly change", "Commands are timed from start to exit. An edit renames a new file over "+
		"an old one, and is complete when both other nodes have the new content.",
		[]string{"figure", "rsync", "saltclusterd", "ratio", "target", ""}, small)
	return nil
}

func (r *rootsBench) rows(t rootsTree) (large []string, small [][]string) {
	c := r.cost
	ratio := c.ours.over(c.theirs)
	verdict := []string{"", ""}
	if t.edited {
		verdict = judged(ratio, "%.1f", coldGoal)
		check, push := c.check.over(c.theirCheck), c.push.over(c.theirPush)
		row := func(what string, theirs, ours, judge series, format string, goal float64) {
			small = append(small, append([]string{
				what, theirs.show("%.0f"), ours.show("%.0f"), ours.over(theirs).bold("%.2f"),
			}, judged(judge, format, goal)...))
		}
		row(t.name+": ms, nothing has changed", c.theirCheck, c.check, check, "%.1f", unchangedGoal)
		row("ms, one changed file to two nodes, pushed", c.theirPush, c.push, push, "%.1f", pushGoal)
		row("ms, the same, detected automatically", nil, c.auto, c.auto, "%.0f ms", editGoal)
	}
	large = append([]string{t.name, c.theirs.show("%.2f"), c.ours.show("%.2f"), ratio.bold("%.2f")}, verdict...)
	large = append(large, c.receiver.show("%.0f"), c.sender.show("%.0f"))
	worst := c.receiver
	if c.sender.median() > worst.median() {
		worst = c.sender
	}
	return append(large, judged(worst, "%.0f", rootsMemGoal)...), small
}

// round brings one new tree to the nodes, in both ways.
func (r *rootsBench) round(ctx context.Context, t rootsTree, round int) error {
	author, fresh, third := r.c.Nodes[0], r.c.Nodes[1], r.c.Nodes[2]
	if err := r.lay(ctx, t, round); err != nil {
		return err
	}
	if err := r.empty(ctx, fresh); err != nil {
		return err
	}
	err := takeTurns(round, func() error { return r.cold(ctx, author, fresh) }, func() error {
		if err := errors.Join(emptyDir(filepath.Join(fresh.Dir(), copyDir)), settle()); err != nil {
			return err
		}
		took, err := r.pull(ctx, fresh)
		r.cost.theirs.add(took.Seconds())
		return err
	})
	if err != nil {
		return err
	}
	if err := sameTree(filepath.Join(fresh.Dir(), copyDir), fresh.Master.FileRoot()); err != nil || !t.edited {
		return err
	}
	if _, err := r.pull(ctx, third); err != nil {
		return err
	}
	for i := range r.rounds {
		checks := []func() error{func() error {
			took, err := r.ctl(ctx, fresh, "sync_roots")
			r.cost.check.add(millis(took))
			return err
		}, func() error {
			took, err := r.pull(ctx, fresh)
			r.cost.theirCheck.add(millis(took))
			return err
		}}
		if err := takeTurns(i, checks...); err != nil {
			return err
		}
		edits := []func() error{func() error { return r.edits(ctx, t) }, func() error { return r.theirEdit(ctx, t) }}
		if err := takeTurns(i, edits...); err != nil {
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
	for _, dir := range []string{plain, next} {
		if err := errors.Join(emptyDir(dir), t.make(dir, round)); err != nil {
			return err
		}
	}
	if err := emptyDir(author.Master.FileRoot()); err != nil {
		return err
	}
	if _, err := r.ctl(ctx, author, "sync_roots", "--force", "--yes"); err != nil {
		return err
	}
	names, err := os.ReadDir(next)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := os.Rename(filepath.Join(next, n.Name()), filepath.Join(author.Master.FileRoot(), n.Name())); err != nil {
			return err
		}
	}
	_, err = r.ctl(ctx, author, "sync_roots", "--force", "--yes")
	return err
}

// empty makes a node one that has never had any of the tree and has no directory for it yet.
func (r *rootsBench) empty(ctx context.Context, n *lab.Node) error {
	if err := n.Daemon.Stop(ctx); err != nil {
		return err
	}
	state := filepath.Join(n.Daemon.StateDir, "roots")
	// A dangling link keeps saltclusterd from making the directory.
	err := errors.Join(emptyDir(state), os.RemoveAll(n.Master.FileRoot()), os.Symlink("nowhere", n.Master.FileRoot()))
	if err != nil {
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

// settle flushes pending writes and touches free memory. The host of a virtual machine takes away memory that was not
// used for a while, and the first to touch it waits for the host.
func settle() error {
	const most = 4 << 30 // more than either side needs
	unix.Sync()
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return fmt.Errorf("read free memory: %w", err)
	}
	size := int(min(most, uint64(info.Freeram)*uint64(info.Unit)/2))
	m, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return fmt.Errorf("touch free memory: %w", err)
	}
	return unix.Munmap(m)
}

// cold has a node fetch everything, and reads the peak memory of both ends.
func (r *rootsBench) cold(ctx context.Context, from, to *lab.Node) error {
	if err := settle(); err != nil {
		return err
	}
	base := map[*lab.Node]float64{}
	for _, n := range []*lab.Node{from, to} {
		// The peak begins anew.
		err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", n.Daemon.PID()), []byte("5"), 0)
		if err != nil {
			return err
		}
		if base[n], err = memoryOf(n.Daemon.PID(), "VmRSS"); err != nil {
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
	for n, peak := range map[*lab.Node]*series{from: &r.cost.sender, to: &r.cost.receiver} {
		v, err := memoryOf(n.Daemon.PID(), "VmHWM")
		if err != nil {
			return err
		}
		peak.add((v - base[n]) / mib)
	}
	return nil
}

// edits changes one file twice: the first is found without a command, the second is pushed.
func (r *rootsBench) edits(ctx context.Context, t rootsTree) error {
	author, others := r.c.Nodes[0], r.c.Nodes[1:]
	took, err := r.edit(t, author.Master.FileRoot(), func(path string, text []byte) error {
		for _, n := range others {
			if err := holds(ctx, filepath.Join(n.Master.FileRoot(), path), text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.cost.auto.add(millis(took))
	if _, err := r.ctl(ctx, author, "sync_roots"); err != nil { // what follows an edit does not count for the next
		return err
	}
	_, err = r.edit(t, author.Master.FileRoot(), func(path string, text []byte) error {
		took, err := r.ctl(ctx, author, "sync_roots")
		r.cost.push.add(millis(took))
		for _, n := range others {
			if got, _ := os.ReadFile(filepath.Join(n.Master.FileRoot(), path)); err == nil && !bytes.Equal(got, text) {
				return fmt.Errorf("sync_roots has ended, and %s does not have the edit", n.Name)
			}
		}
		return err
	})
	return err
}

// theirEdit changes one file and has rsync bring it to both other nodes.
func (r *rootsBench) theirEdit(ctx context.Context, t rootsTree) error {
	author := r.c.Nodes[0]
	plain := filepath.Join(author.Dir(), plainDir)
	took, err := r.edit(t, plain, func(string, []byte) error {
		for _, n := range r.c.Nodes[1:] {
			if _, err := r.timed(ctx, author, "rsync", "-a", plain+"/", "rsync://"+n.Addr+":"+port+"/copy/"); err != nil {
				return err
			}
		}
		return nil
	})
	r.cost.theirPush.add(millis(took))
	return err
}

// edit replaces a file as editors do, and returns how long it and what follows took.
func (r *rootsBench) edit(t rootsTree, root string, then func(path string, text []byte) error) (time.Duration, error) {
	path, text := t.path(rand.IntN(t.files)), fmt.Appendf(nil, "edited at %d\n", time.Now().UnixNano())
	temp := filepath.Join(root, filepath.Dir(path), ".#new")
	began := time.Now()
	if err := os.WriteFile(temp, text, 0o644); err != nil {
		return 0, err
	}
	if err := os.Rename(temp, filepath.Join(root, path)); err != nil {
		return 0, err
	}
	err := then(path, text)
	return time.Since(began), err
}

// holds waits until a file has some content.
func holds(ctx context.Context, path string, text []byte) error {
	ctx, cancel := context.WithTimeout(ctx, editWithin)
	defer cancel()
	for {
		if got, err := os.ReadFile(path); err == nil && bytes.Equal(got, text) {
			return nil
		}
		if err := sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("%s does not get the edit: %w", path, err)
		}
	}
}

// startRsync starts an rsync daemon on each node.
func (r *rootsBench) startRsync(ctx context.Context) error {
	rsync, err := exec.LookPath("rsync")
	if err != nil {
		return fmt.Errorf("find rsync (make setup installs it): %w", err)
	}
	for _, n := range r.c.Nodes {
		plain, to := filepath.Join(n.Dir(), plainDir), filepath.Join(n.Dir(), copyDir)
		if err := errors.Join(emptyDir(plain), emptyDir(to)); err != nil {
			return err
		}
		config := filepath.Join(n.Dir(), "rsyncd.conf")
		text := fmt.Sprintf("use chroot = no\nuid = %d\ngid = %d\n[plain]\npath = %s\n[copy]\npath = %s\nread only = no\n",
			os.Getuid(), os.Getgid(), plain, to)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return err
		}
		p := n.NewProcess(lab.Spec{
			Name:  "rsyncd",
			Argv:  []string{rsync, "--daemon", "--no-detach", "--config=" + config, "--address=" + n.Addr, "--port=" + port},
			Ready: func(ctx context.Context) error { return n.Accepts(ctx, n.Addr+":"+port) },
		})
		if err := p.Start(ctx); err != nil {
			return err
		}
		if err := p.WaitReady(ctx, startWithin); err != nil {
			return err
		}
	}
	return nil
}

// pull has rsync fetch the author's tree.
func (r *rootsBench) pull(ctx context.Context, to *lab.Node) (time.Duration, error) {
	from := "rsync://" + r.c.Nodes[0].Addr + ":" + port + "/plain/"
	return r.timed(ctx, to, "rsync", "-a", "--delete", from, filepath.Join(to.Dir(), copyDir)+"/")
}

// ctl runs saltclusterctl.
func (r *rootsBench) ctl(ctx context.Context, n *lab.Node, args ...string) (time.Duration, error) {
	bin := r.bin
	if bin == "" {
		bin = filepath.Join(lab.ModuleRoot(), "bin")
	}
	return r.timed(ctx, n, append([]string{filepath.Join(bin, "saltclusterctl")}, args...)...)
}

// timed runs a command in a node's network, without the lab's supervisor, which would count for both sides.
func (r *rootsBench) timed(ctx context.Context, n *lab.Node, argv ...string) (took time.Duration, err error) {
	err = n.Do(func() error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Env = append(os.Environ(), n.Daemon.Env()...)
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took = time.Since(began)
		if err != nil {
			return fmt.Errorf("%q on %s: %w: %s", argv, n.Name, err, out)
		}
		return nil
	})
	return took, err
}
