package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/adminapi"
)

// Goals of the part join.
const (
	joinerKeysGoal = 5.0    // s until a joiner has the accepted keys
	joinerDataGoal = 20.0   // s until it has grains and pillars, too
	keyGoal        = 1000.0 // ms from salt-key's rename to the last node, 99th percentile
	grainBytes     = 4 << 10
	pillarBytes    = 2 << 10
	fileLook       = 20 * time.Millisecond
	keyLook        = 200 * time.Microsecond
)

// joins measures what a node that joins waits for, and how long one decision takes to be everywhere.
func (b *bench) joins(ctx context.Context) error {
	var keys, data, ready, one series
	for round := range b.dataRounds {
		b.say("join: round %d of %d, %d minions", round+1, b.dataRounds, b.known)
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			return b.joinRound(ctx, l, &keys, &data, &ready, &one)
		})
		if err != nil {
			return err
		}
	}
	b.out.table(fmt.Sprintf("What a joiner gets, %d minions", b.known),
		fmt.Sprintf("A third node (3008) joins two (3006, 3007) that have the keys, and grains (%d KiB) and pillars (%d KiB) of all minions; from the "+
			"call of `join` on, identity and log included. Then keys are accepted one by one, as `salt-key -a` does it.", grainBytes>>10, pillarBytes>>10),
		[]string{"figure", "value", "target", ""}, [][]string{
			{"s until it has all accepted keys", keys.show("%.1f"), fmt.Sprintf("≤ %.0f", joinerKeysGoal), atMost(keys, joinerKeysGoal)},
			{"s until it has all grains and pillars", data.show("%.1f"), fmt.Sprintf("≤ %.0f", joinerDataGoal), atMost(data, joinerDataGoal)},
			{"s until it votes and is ready", ready.show("%.1f"), "", ""},
			{"ms until an accepted key is on all nodes, p99", one.show("%.0f"), fmt.Sprintf("≤ %.0f", keyGoal), atMost(one, keyGoal)},
		})
	return nil
}

func (b *bench) joinRound(ctx context.Context, l *lab.Lab, keys, data, ready, one *series) error {
	c, err := l.NewCluster(ctx, lab.ClusterSpec{Masters: lab.Versions, DaemonSettings: quiet})
	if err != nil {
		return err
	}
	key, err := herd.NewFastKey()
	if err != nil {
		return err
	}
	ids := make([]string, b.known)
	for i := range ids {
		ids[i] = fmt.Sprintf("known-%05d", i)
	}
	first, joiner, all := c.Nodes[0], c.Nodes[len(c.Nodes)-1], c.Nodes
	if err := errors.Join(herd.Accept(filepath.Join(first.Master.PKIDir(), "minions"), key, ids...), cacheData(first.Master, ids)); err != nil {
		return err
	}
	c.Nodes = all[:len(all)-1]
	if err := c.Form(ctx); err != nil {
		return err
	}
	second := filepath.Join(c.Nodes[1].Master.CacheDir(), "minions")
	if err := awaitFiles(ctx, second, "data.p", b.known); err != nil {
		return err
	}
	c.Nodes = all
	if err := errors.Join(os.MkdirAll(joiner.Master.CacheDir(), 0o755), joiner.Daemon.Start(ctx)); err != nil {
		return err
	}
	if err := joiner.Daemon.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	began := time.Now()
	joined := make(chan error, 1)
	go func() { joined <- joiner.Daemon.Join(ctx, first.Daemon) }()
	if err := awaitFiles(ctx, filepath.Join(joiner.Master.PKIDir(), "minions"), "", b.known); err != nil {
		return errors.Join(err, <-joined)
	}
	keys.add(time.Since(began).Seconds())
	if err := awaitFiles(ctx, filepath.Join(joiner.Master.CacheDir(), "grains"), "", b.known); err != nil {
		return errors.Join(err, <-joined)
	}
	data.add(time.Since(began).Seconds())
	if err := <-joined; err != nil {
		return err
	}
	if err := awaitVoter(ctx, joiner); err != nil {
		return err
	}
	ready.add(time.Since(began).Seconds())
	if err := joiner.Master.Start(ctx); err != nil {
		return err
	}
	if err := c.Whole(ctx, startWithin); err != nil {
		return err
	}
	return b.acceptOne(ctx, c, key, one)
}

// awaitVoter waits until a node serves minions, and votes.
func awaitVoter(ctx context.Context, n *lab.Node) error {
	return lab.Eventually(ctx, startWithin, n.Name+" to vote", func(ctx context.Context) error {
		all, err := n.Daemon.Members(ctx)
		if err != nil {
			return err
		}
		for _, m := range all.Members {
			if m.ID == n.Name && (m.Role != adminapi.RoleVoter || m.Ready == nil || !*m.Ready) {
				return fmt.Errorf("%s, lacking %s", m.Role, adminapi.SyncText(m.Sync))
			}
		}
		return nil
	})
}

// cacheData writes what a 3006 or 3007 master caches of minions.
func cacheData(m *lab.Master, ids []string) error {
	blob := func(key string, n int) []byte {
		out := msgpack.AppendShort(msgpack.AppendMapHead(nil, 1), key)
		out = append(out, 0xc5, byte(n>>8), byte(n))
		return append(out, bytes.Repeat([]byte("x"), n)...)
	}
	body := msgpack.AppendShort(msgpack.AppendMapHead(nil, 2), "grains")
	body = append(msgpack.AppendShort(append(body, blob("text", grainBytes)...), "pillar"), blob("text", pillarBytes)...)
	for _, id := range ids {
		dir := filepath.Join(m.CacheDir(), "minions", id)
		if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "data.p"), body, 0o600)); err != nil {
			return fmt.Errorf("write minion data: %w", err)
		}
	}
	return nil
}

// awaitFiles waits until a directory has n entries, each with a file in it when that is named.
func awaitFiles(ctx context.Context, dir, file string, n int) error {
	for {
		names, err := os.ReadDir(dir)
		have := len(names)
		for i := 0; file != "" && i < len(names) && have >= n; i++ {
			if _, err := os.Stat(filepath.Join(dir, names[i].Name(), file)); err != nil {
				have--
			}
		}
		if err == nil && have >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d in %s: %w", have, n, dir, context.Cause(ctx))
		case <-time.After(fileLook):
		}
	}
}

// acceptOne accepts keys one after the other, as salt-key does, and waits for each to be on all nodes.
func (b *bench) acceptOne(ctx context.Context, c *lab.Cluster, key herd.Key, one *series) error {
	b.say("join: %d keys are accepted one by one", b.accepts)
	took, err := acceptEach(ctx, c, key, b.accepts)
	if err == nil {
		one.add(millis(quantile(took, 0.99)))
	}
	return err
}

// acceptEach tells how long each of n keys took from the edit until it was on all nodes.
func acceptEach(ctx context.Context, c *lab.Cluster, key herd.Key, count int) (took []time.Duration, err error) {
	for i := range count {
		id := fmt.Sprintf("new-%03d", i)
		n := c.Nodes[i%len(c.Nodes)]
		path := func(n *lab.Node, dir string) string { return filepath.Join(n.Master.PKIDir(), dir, id) }
		if err := herd.Accept(filepath.Dir(path(n, "minions_pre")), key, id); err != nil {
			return nil, err
		}
		if err := onAll(ctx, c, func(n *lab.Node) string { return path(n, "minions_pre") }); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := os.Rename(path(n, "minions_pre"), path(n, "minions")); err != nil {
			return nil, err
		}
		if err := onAll(ctx, c, func(n *lab.Node) string { return path(n, "minions") }); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

func onAll(ctx context.Context, c *lab.Cluster, path func(*lab.Node) string) error {
	for _, n := range c.Nodes {
		for {
			if _, err := os.Stat(path(n)); err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s: %w", path(n), context.Cause(ctx))
			case <-time.After(keyLook):
			}
		}
	}
	return nil
}
