package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/integration/lab"
)

const (
	keyWithin = 2 * time.Minute

	// rejected is what a minion logs before it sleeps for 10 to 20 s and ends (salt/crypt.py AsyncAuth.sign_in).
	rejected = "has rejected this minion's public key"
)

// keyTimes is how long a real minion and salt-key need, in s.
type keyTimes struct{ denied, command, rejected series }

// keys compares how long a changed key and a rejection take to have their effect, with a real minion.
func (b *bench) keys(ctx context.Context) error {
	var rows [][]string
	err := b.versus(ctx, lab.Versions, func(ctx context.Context, bare, ours *target) error {
		var alone, behind keyTimes
		for round := range b.rounds {
			if err := bare.timeKeys(ctx, round, &alone); err != nil {
				return err
			}
			if err := ours.timeKeys(ctx, round, &behind); err != nil {
				return err
			}
		}
		row := func(name string, bare, ours series, version string) {
			rows = append(rows, []string{version, name, bare.show("%.1f"), ours.show("%.1f"), ours.over(bare).bold("%.2f")})
		}
		row("a changed key is denied", alone.denied, behind.denied, bare.version)
		row("`salt-key -r`", alone.command, behind.command, bare.version)
		row("a rejected minion notices", alone.rejected, behind.rejected, bare.version)
		return nil
	})
	if err != nil {
		return err
	}
	b.table("Changed and rejected keys", "Three times, in seconds: from the start of a minion with a key other than "+
		"the accepted one until its key is denied; the run time of `salt-key -r` for a pending key; and from the end of that "+
		"command until the minion, which asks every 2 s here, logs the rejection.",
		[]string{"Salt", "step", "master alone", "behind saltclusterd", "ratio"}, rows)
	return nil
}

func (t *target) timeKeys(ctx context.Context, round int, to *keyTimes) error {
	m, err := t.from.NewMinion(t.version, fmt.Sprintf("%s-%d", t.host.Name, round), t.host.Addr)
	if err != nil {
		return err
	}
	if err := m.Start(ctx); err != nil {
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
	started := time.Now()
	if err := t.startAndFind(ctx, m, "minions_denied"); err != nil {
		return err
	}
	to.denied.add(time.Since(started).Seconds())
	if err := m.Kill(); err != nil {
		return err
	}
	if m, err = t.from.NewMinion(t.version, fmt.Sprintf("%s-%d-rejected", t.host.Name, round), t.host.Addr); err != nil {
		return err
	}
	if err := t.startAndFind(ctx, m, "minions_pre"); err != nil {
		return err
	}
	started = time.Now()
	res, err := t.salt.Run(ctx, "salt-key", "-y", "-r", m.ID)
	if err == nil {
		err = res.Err()
	}
	if err != nil {
		return err
	}
	to.command.add(time.Since(started).Seconds())
	started = time.Now()
	err = lab.Eventually(ctx, keyWithin, m.ID+" to be told", func(context.Context) error {
		if !m.Logged(rejected) {
			return fmt.Errorf("not logged: %q", rejected)
		}
		return nil
	})
	if err != nil {
		return err
	}
	to.rejected.add(time.Since(started).Seconds())
	return m.Kill()
}

// startAndFind starts a minion and waits until its key is in a directory of the master.
func (t *target) startAndFind(ctx context.Context, m *lab.Minion, dir string) error {
	if err := m.Start(ctx); err != nil {
		return err
	}
	return lab.Eventually(ctx, keyWithin, m.ID+" in "+dir, func(context.Context) error {
		_, err := os.Stat(filepath.Join(t.salt.PKIDir(), dir, m.ID))
		return err
	})
}
