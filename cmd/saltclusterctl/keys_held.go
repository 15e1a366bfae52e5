package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newKeysHeldCommand(e *env) *cli.Command {
	return verb(&cli.Command{
		Name:  "held",
		Usage: "list accepted keys that were taken away on this host, too many at once, and decide about them",
		Description: "More than three, or a tenth of the accepted keys, that are deleted or rejected within a minute by way of the salt-master's\n" +
			"directories are written back, whoever did it: thorium, a reactor, a script or salt-key. saltclusterctl keys delete is never held.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "delete", Usage: "delete them in the whole cluster"},
			&cli.BoolFlag{Name: "keep", Usage: "it was a mistake: they stay, and are listed no more"},
			yesFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 || c.Bool("delete") && c.Bool("keep") {
				return usagef("saltclusterctl keys held --delete", "keys held takes no arguments, and one of --delete and --keep")
			}
			return runKeysHeld(c, e)
		},
	})
}

func runKeysHeld(c *cli.Context, e *env) error {
	held, err := ask(c, e, (*adminapi.Client).HeldKeys)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("delete") && len(held.IDs) > 0:
		named := clean(strings.Join(held.IDs[:min(len(held.IDs), 10)], " "))
		if err := e.consent(c, fmt.Sprintf("delete %s: %s?", plural(len(held.IDs), "key"), named)); err != nil {
			return err
		}
		return e.decideKeys(c, held.IDs, adminapi.KeyDeleted)
	case c.Bool("keep"):
		if held, err = ask(c, e, (*adminapi.Client).ForgetHeldKeys); err != nil {
			return err
		}
	}
	return e.show(c, held, func(s *screen) {
		if len(held.IDs) == 0 {
			s.line("no keys are held on %s", clean(held.Node))
			return
		}
		for _, id := range held.IDs {
			s.line("%s", clean(id))
		}
		if c.Bool("keep") {
			s.line("%s: accepted, as before", plural(len(held.IDs), "key"))
		}
	})
}

// decideKeys decides about keys in the whole cluster, some at a time.
func (e *env) decideKeys(c *cli.Context, ids []string, to string) error {
	var all adminapi.DecidedKeys
	for some := range slices.Chunk(ids, adminapi.MaxDecided) {
		done, err := ask(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.DecidedKeys, error) {
			return client.DecideKeys(ctx, adminapi.DecideKeysRequest{State: to, IDs: some})
		})
		if err != nil {
			return err
		}
		all.Rev, all.Keys = done.Rev, append(all.Keys, done.Keys...)
	}
	return e.showDecided(c, all, to)
}
