package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/integration/herd"
)

// signInGoals are at most so much of the CPU of a master alone.
var signInGoals = map[string]float64{"3006.28": 0.45, "3008.3": 0.25}

// afterwards is how long the consequences of sign-ins count: events that wait for others, and their subscribers.
const afterwards = 500 * time.Millisecond

func (b *bench) signin(ctx context.Context) error {
	count := pick(b, 1000, 100)
	var rows [][]string
	err := b.versus(ctx, versions, func(ctx context.Context, bare, ours *target) error {
		alone, behind, err := b.turns(bare, ours, count, func(t *target) (used, error) { return t.signIns(ctx, count) })
		ratio := behind.over(alone)
		rows = append(rows, append([]string{
			bare.version, alone.all.show("%.2f"), behind.all.show("%.2f"), behind.daemon.show("%.2f"),
			behind.master.show("%.2f"), ratio.bold("%.2f"),
		}, judged(ratio, "%.2f", signInGoals[bare.version])...))
		return err
	})
	if err != nil {
		return err
	}
	b.table("Sign-ins (`_auth`) of accepted keys", fmt.Sprintf(
		"CPU milliseconds per sign-in, whole process trees. Each side signs in %d times per round, %d at a time, each time "+
			"over a new connection. Minions have 2048-bit keys; %d more keys are accepted. Each reply is decrypted and verified.",
		count, atATime, fleet), []string{
		"Salt", "master alone", "behind saltclusterd", "of that, saltclusterd", "of that, the master", "ratio", "target", "",
	}, rows)
	return nil
}

// signIns signs minions in, in turn, and checks the replies afterwards.
func (t *target) signIns(ctx context.Context, count int) (u used, err error) {
	all, replies := make([]*herd.SignIn, count), make([][]byte, count)
	for i := range all {
		if all[i], err = t.minions[i%len(t.minions)].SignIn(t.creds[0].Master); err != nil {
			return u, err
		}
	}
	each := func(ctx context.Context, atATime int, f func(ctx context.Context, i int) error) error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(atATime)
		for i := range all {
			g.Go(func() error { return f(ctx, i) })
		}
		return g.Wait()
	}
	u, err = t.spend(func() error {
		err := each(ctx, atATime, func(ctx context.Context, i int) (err error) {
			replies[i], err = t.signIn(ctx, all[i])
			return err
		})
		if err != nil {
			return err
		}
		return sleep(ctx, afterwards)
	})
	if err != nil {
		return u, err
	}
	return u, each(ctx, 2, func(_ context.Context, i int) error {
		_, err := check(all[i], replies[i], t.creds[0].Master)
		return err
	})
}
