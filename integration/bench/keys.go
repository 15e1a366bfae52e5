package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

// keyWithin bounds each step.
const keyWithin = 2 * time.Minute

// keyTimes is how long a real minion and salt-key need.
type keyTimes struct{ denied, command, rejected series }

// keys compares how long a changed key and a rejection take with a real minion of the master's version: until the key is among the
// denied ones after the minion was started with another key; for salt-key -r; and from there until the minion is told.
func (b *bench) keys(ctx context.Context) error {
	var rows [][]string
	for _, version := range lab.Versions {
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			b.say("keys of Salt %s, alone and behind saltclusterd", version)
			bare, err := bareMaster(ctx, l, "bare", version, nil, 0)
			if err != nil {
				return err
			}
			ours, err := clusterNode(ctx, l, "ours", version, nil, 0)
			if err != nil {
				return err
			}
			var alone, through keyTimes
			for round := range b.sizes.rounds {
				if err := bare.timeKeys(ctx, version, round, &alone); err != nil {
					return err
				}
				if err := ours.timeKeys(ctx, version, round, &through); err != nil {
					return err
				}
			}
			for _, row := range []struct {
				name        string
				bare, other series
			}{
				{"a changed key is denied", alone.denied, through.denied}, {"`salt-key -r`", alone.command, through.command},
				{"a rejected minion is told", alone.rejected, through.rejected},
			} {
				rows = append(rows, []string{
					version, row.name, row.bare.show("%.1f"), row.other.show("%.1f"), "**" + row.other.over(row.bare).show("%.2f") + "**",
				})
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	b.out.table("Changed and rejected keys", "Seconds, min/median/max: from the start of a minion with another key than the accepted one until that is among "+
		"the denied keys; for `salt-key -r` of a pending key; and from its end until the minion, which asks every 2 s here, is told. After that it sleeps for 10 to 20 s by itself, and ends.",
		[]string{"Salt", "step", "master alone", "behind saltclusterd", "ratio"}, rows)
	return nil
}

func (t *target) timeKeys(ctx context.Context, version string, round int, to *keyTimes) error {
	m, err := t.from.NewMinion(version, fmt.Sprintf("%s-%d", t.salt.Host().Name, round), t.salt.Host().Addr)
	if err != nil {
		return err
	}
	started := time.Now()
	state := func(dir string) error {
		return lab.Eventually(ctx, keyWithin, m.ID+" in "+dir, func(context.Context) error {
			_, err := os.Stat(filepath.Join(t.salt.PKIDir(), dir, m.ID))
			return err
		})
	}
	start := func() error {
		started = time.Now()
		return m.Start(ctx)
	}
	if err := start(); err != nil {
		return err
	}
	if err := t.salt.AcceptKeys(ctx, keyWithin, m.ID); err != nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(m.PKIDir()); err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	if err := state("minions_denied"); err != nil {
		return err
	}
	to.denied.add(time.Since(started).Seconds())
	if err := m.Kill(); err != nil {
		return err
	}
	if m, err = t.from.NewMinion(version, fmt.Sprintf("%s-%d-rejected", t.salt.Host().Name, round), t.salt.Host().Addr); err != nil {
		return err
	}
	if err := start(); err != nil {
		return err
	}
	if err := state("minions_pre"); err != nil {
		return err
	}
	started = time.Now()
	if err := t.saltKey(ctx, "-r", m.ID); err != nil {
		return err
	}
	to.command.add(time.Since(started).Seconds())
	started = time.Now()
	err = lab.Eventually(ctx, keyWithin, m.ID+" to be told", func(context.Context) error {
		if !m.Logged(rejected) {
			return fmt.Errorf("it has not logged %q", rejected)
		}
		return nil
	})
	if err != nil {
		return err
	}
	to.rejected.add(time.Since(started).Seconds())
	return m.Kill()
}

// rejected is what a minion logs before it sleeps for 10 to 20 s, at random, and ends (salt/crypt.py AsyncAuth.sign_in).
const rejected = "has rejected this minion's public key"

func (t *target) saltKey(ctx context.Context, args ...string) error {
	res, err := t.salt.Run(ctx, "salt-key", append([]string{"-y"}, args...)...)
	if err != nil {
		return err
	}
	return res.Err()
}
