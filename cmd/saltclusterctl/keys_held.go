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
	return completeCommand(&cli.Command{
		Name:  "held",
		Usage: "list accepted keys that were deleted on this host and restored, and decide about them",
		Description: "Accepted keys that are deleted or rejected within a minute by way of the salt-masters, more than three and more than\n" +
			"cluster_keys_max_delete percent (10) of them, are restored: reactors and scripts delete keys of minions that use other\n" +
			"masters, and salt-key cannot be told from them. So are more than three within an hour that would leave less than half of\n" +
			"the keys, and any others while some are held. On a host whose thorium deletes keys, each one is restored.\n" +
			"saltclusterctl keys delete and keys reject are never held.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "delete", Usage: "delete them in the whole cluster"},
			&cli.BoolFlag{Name: "keep", Usage: "keep them, and empty the list"},
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
	held, err := askAdmin(c, e, (*adminapi.Client).HeldKeys)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("delete") && len(held.IDs) > 0:
		named := clean(strings.Join(held.IDs[:min(len(held.IDs), 10)], " "))
		if err := e.askConsent(c, fmt.Sprintf("delete %s: %s?", plural(len(held.IDs), "key"), named)); err != nil {
			return err
		}
		return e.decideKeys(c, held.IDs, adminapi.KeyDeleted)
	case c.Bool("keep"):
		if held, err = askAdmin(c, e, (*adminapi.Client).ForgetHeldKeys); err != nil {
			return err
		}
	}
	return e.printValue(c, held, func(s *screen) {
		if len(held.IDs) == 0 {
			s.line("no keys are held on %s", clean(held.Node))
			return
		}
		for _, id := range held.IDs {
			s.line("%s", clean(id))
		}
		if c.Bool("keep") {
			s.line("%s kept", plural(len(held.IDs), "key"))
			return
		}
		s.line("%s restored; --delete deletes them in the whole cluster, --keep keeps them", plural(len(held.IDs), "key"))
	})
}

// decideKeys decides about keys in the whole cluster, some at a time.
func (e *env) decideKeys(c *cli.Context, ids []string, to string) error {
	var all adminapi.DecidedKeys
	for some := range slices.Chunk(ids, adminapi.MaxDecided) {
		done, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.DecidedKeys, error) {
			return client.DecideKeys(ctx, adminapi.DecideKeysRequest{State: to, IDs: some})
		})
		if err != nil {
			return err
		}
		all.Rev, all.Keys = done.Rev, append(all.Keys, done.Keys...)
	}
	return e.showDecided(c, all, to)
}
