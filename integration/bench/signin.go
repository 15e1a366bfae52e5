package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltcrypt/libcrypto"
)

// duel is a stock master alone against the same one behind saltclusterd.
type duel struct {
	version    string
	bare, ours *target
	// goGoal and libcryptoGoal are at most this much of the bare master's CPU per sign-in, with RSA by Go and by OpenSSL.
	goGoal, libcryptoGoal float64
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
			{version: "3006.28", goGoal: 0.95, libcryptoGoal: 0.45},
			{version: "3008.3", goGoal: 0.55, libcryptoGoal: 0.25},
		}
		for i, d := range duels {
			b.say("start Salt %s, alone and behind saltclusterd", d.version)
			if d.bare, err = bareMaster(ctx, l, fmt.Sprint("bare", i+1), d.version, minions, b.fleet); err != nil {
				return err
			}
			if d.ours, err = clusterNode(ctx, l, fmt.Sprint("ours", i+1), d.version, minions, b.fleet); err != nil {
				return err
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

// targets are the two sides.
func (d *duel) targets() []*target { return []*target{d.bare, d.ours} }

// atATime is how many sign-ins are under way at a time: enough to keep a master's workers busy.
const atATime = 4

// signInCost is what one side needed per sign-in, in milliseconds of CPU.
type signInCost struct{ all, daemon, master series }

func (b *bench) signin(ctx context.Context, duels []*duel, minions []*herd.Identity) error {
	costs := map[*target]*signInCost{}
	var floor series
	key, backend, err := clusterKey()
	if err != nil {
		return err
	}
	for round := range b.sizes.rounds + 1 {
		b.say("sign-ins, round %d", round)
		two, err := privateOperations(key)
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
		goal := d.libcryptoGoal
		if backend == goBackend {
			goal = d.goGoal
		}
		row(d.version, floor.show("%.2f"), costs[d.bare], costs[d.ours], goal)
	}
	b.out.table("Sign-ins (`_auth`) of accepted keys", fmt.Sprintf(
		"CPU milliseconds per sign-in, whole process trees. %d sign-ins per side and round, %d at a time, each over a new connection; "+
			"%d minions with 2048-bit keys play, %d keys are accepted; each reply is opened and verified. "+
			"RSA: the two private operations that no answer can do without, measured by themselves in the same round, done by %s.",
		b.signIns, atATime, b.minions, b.minions+b.fleet, backend),
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

// privateKey is what the two backends of saltclusterd have in common.
type privateKey interface {
	Public() *saltcrypt.PublicKey
	Sign(algorithm string, data []byte) ([]byte, error)
	DecryptOAEP(algorithm string, ciphertext []byte) ([]byte, error)
}

const goBackend = "Go's crypto/rsa"

// clusterKey makes a key of 2048 bits in the backend that saltclusterd chooses on this host.
func clusterKey() (key privateKey, backend string, err error) {
	m, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, "", err
	}
	if k, err := libcrypto.Accelerate(m); err == nil {
		return k, k.Version(), nil
	}
	return m, goBackend, nil
}

// privateOperations is the CPU time of what a sign-in cannot do without: to open the minion's token and to sign the reply.
func privateOperations(key privateKey) (time.Duration, error) {
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
