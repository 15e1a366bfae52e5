package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
)

// duel is a stock master alone against the same one behind saltclusterd.
type duel struct {
	version    string
	bare, ours *target
	fast       *target // the same with RSA by OpenSSL; nil: there is no such build, or the host has no OpenSSL for it
	// signInGoal and fastGoal are at most this much of the bare master's CPU per sign-in.
	signInGoal, fastGoal float64
}

// realMasters measures what needs stock masters.
func (b *bench) realMasters(ctx context.Context) error {
	b.say("%d key pairs", b.minions)
	minions, err := newMinions(b.minions)
	if err != nil {
		return err
	}
	return b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
		duels := []*duel{
			{version: "3006.28", signInGoal: 0.95, fastGoal: 0.45},
			{version: "3008.3", signInGoal: 0.55, fastGoal: 0.25},
		}
		for i, d := range duels {
			b.say("start Salt %s, alone and behind saltclusterd", d.version)
			if d.bare, err = bareMaster(ctx, l, fmt.Sprint("bare", i+1), d.version, minions, b.fleet); err != nil {
				return err
			}
			if d.ours, err = clusterNode(ctx, l, fmt.Sprint("ours", i+1), d.version, minions, b.fleet); err != nil {
				return err
			}
			if b.wants("signin") {
				if d.fast, err = b.opensslNode(ctx, l, fmt.Sprint("fast", i+1), d.version, minions); err != nil {
					return err
				}
			}
			for _, t := range d.targets() {
				if err := t.enroll(ctx, minions); err != nil {
					return err
				}
			}
		}
		if b.wants("signin") {
			if err := b.signin(ctx, duels, minions); err != nil {
				return err
			}
		}
		if b.wants("forward") {
			return b.forwardReal(ctx, duels)
		}
		return nil
	})
}

// targets are those that take part.
func (d *duel) targets() []*target {
	if d.fast == nil {
		return []*target{d.bare, d.ours}
	}
	return []*target{d.bare, d.ours, d.fast}
}

// opensslNode is clusterNode with the program of make build-openssl beside the usual one; nil when there is none, or it does without OpenSSL.
func (b *bench) opensslNode(ctx context.Context, l *lab.Lab, name, version string, minions []*herd.Identity) (*target, error) {
	if key, err := saltcrypt.GenerateMasterKey(2048); err != nil || key.Accelerated() != "" { // then it does without
		return nil, err
	}
	program := filepath.Join(cmp.Or(b.bin, filepath.Join(lab.ModuleRoot(), "bin")), "openssl", "saltclusterd")
	if _, err := os.Stat(program); err != nil {
		b.say("sign-ins are not measured with OpenSSL: %v", err)
		return nil, nil
	}
	t, err := clusterNodeOf(ctx, l, name, version, program, minions, b.fleet)
	if err != nil {
		return nil, err
	}
	loaded, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", t.daemon.PID()))
	if err == nil && !bytes.Contains(loaded, []byte("libcrypto.so")) {
		b.say("sign-ins are not measured with OpenSSL: the host has none that is fit")
		return nil, nil
	}
	t.name += ", OpenSSL"
	return t, err
}

// atATime is how many sign-ins are under way at a time: enough to keep a master's workers busy.
const atATime = 4

// signInCost is what one side needed per sign-in, in milliseconds of CPU.
type signInCost struct{ all, daemon, master series }

func (b *bench) signin(ctx context.Context, duels []*duel, minions []*herd.Identity) error {
	costs := map[*target]*signInCost{}
	var floor series
	ordinary, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return err
	}
	for round := range b.sizes.rounds + 1 {
		b.say("sign-ins, round %d", round)
		two, err := privateOperations(ordinary)
		if err != nil {
			return err
		}
		if round > 0 {
			floor.add(millis(two))
		}
		for _, d := range duels {
			for _, t := range d.targets() {
				u, err := b.signInRound(ctx, t, minions)
				if err != nil {
					return err
				}
				if round == 0 { // warms up
					costs[t] = &signInCost{}
					continue
				}
				n := float64(b.signIns)
				costs[t].all.add(millis(u.sum()) / n)
				costs[t].daemon.add(millis(u.daemon) / n)
				costs[t].master.add(millis(u.master) / n)
			}
		}
	}
	var rows [][]string
	row := func(name, floor string, bare, ours *signInCost, goal float64) {
		r := ours.all.over(bare.all)
		rows = append(rows, []string{
			name, bare.all.show("%.2f"), ours.all.show("%.2f"), ours.daemon.show("%.2f"), floor, ours.master.show("%.2f"),
			"**" + r.show("%.2f") + "**", fmt.Sprintf("≤ %.2f", goal), atMost(r, goal),
		})
	}
	for _, d := range duels {
		row(d.version, floor.show("%.2f"), costs[d.bare], costs[d.ours], d.signInGoal)
		switch {
		case d.fast != nil:
			row(d.version+", OpenSSL", "–", costs[d.bare], costs[d.fast], d.fastGoal)
		case ordinary.Accelerated() != "":
			row(d.version+", "+ordinary.Accelerated()+": the same", floor.show("%.2f"), costs[d.bare], costs[d.ours], d.fastGoal)
		}
	}
	b.out.table("Sign-ins (`_auth`) of accepted keys", fmt.Sprintf(
		"CPU milliseconds per sign-in, whole process trees. %d sign-ins per side and round, %d at a time, each over a new connection; "+
			"%d minions with 2048-bit keys play, %d keys are accepted; each reply is opened and verified. "+
			"RSA: the two private operations that no answer can do without, measured by themselves in the same round. "+
			"The lower rows judge accelerated RSA: the packaged program itself where it has instructions for it, else that of `make build-openssl`.",
		b.signIns, atATime, b.minions, b.minions+b.fleet),
		[]string{"Salt", "master alone", "behind saltclusterd", "of it saltclusterd", "of that RSA", "of it the master", "ratio", "target", ""}, rows)
	return nil
}

// afterwards is how long what sign-ins leave behind counts as well: events that wait for others, and who listens to them.
const afterwards = 500 * time.Millisecond

func (b *bench) signInRound(ctx context.Context, t *target, minions []*herd.Identity) (used, error) {
	all, err := t.prepare(minions, b.signIns)
	if err != nil {
		return used{}, err
	}
	u, err := t.spend(func() error {
		if err := t.signIns(ctx, all, atATime); err != nil {
			return err
		}
		sleep(ctx, afterwards)
		return ctx.Err()
	})
	if err != nil {
		return u, err
	}
	var g errgroup.Group
	g.SetLimit(2)
	for _, s := range all {
		g.Go(func() error { _, err := s.check(t.creds[0].Master); return err })
	}
	if err := g.Wait(); err != nil {
		return u, fmt.Errorf("%s: %w", t.name, err)
	}
	return u, nil
}

// privateOperations is the CPU time of what a sign-in cannot do without: to open the minion's token and to sign the reply.
func privateOperations(key *saltcrypt.MasterKey) (time.Duration, error) {
	const times = 100
	sealed, err := key.Public().EncryptOAEP(saltcrypt.OAEPSHA1, []byte("token"))
	if err != nil {
		return 0, err
	}
	before, err := ownCPU(os.Getpid())
	if err != nil {
		return 0, err
	}
	for range times {
		if _, err := key.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); err != nil {
			return 0, err
		}
		if _, err := key.Sign(saltcrypt.PKCS1v15SHA1, sealed); err != nil {
			return 0, err
		}
	}
	after, err := ownCPU(os.Getpid())
	return (after - before) / times, err
}
