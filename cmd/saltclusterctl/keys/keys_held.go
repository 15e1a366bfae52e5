package keys

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newKeysHeldCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "held",
		Usage: "list accepted keys that were deleted on this host and restored, and decide about them",
		Description: "If accepted keys are deleted, rejected or replaced through the salt-masters within a minute, and they are more than three and more than\n" +
			"cluster_keys_max_delete percent (10) of all, they are restored: reactors and scripts delete keys of minions that use other\n" +
			"masters, and these deletions look the same as those by salt-key. The same holds for two or three at once that are more than a\n" +
			"third of all keys, for more than three within an hour that would leave less than half of the keys, and for any others while\n" +
			"some are held. On a host whose thorium deletes keys, each deleted key is restored. saltclusterctl keys delete and keys reject\n" +
			"are never held.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "delete", Usage: "delete them in the whole cluster"},
			&cli.BoolFlag{Name: "keep", Usage: "keep them, and clear the list"},
			console.YesFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 || c.Bool("delete") && c.Bool("keep") {
				return console.Usagef("saltclusterctl keys held --delete", "keys held takes no arguments, and one of --delete and --keep")
			}
			return runKeysHeld(c, e)
		},
	})
}

func runKeysHeld(c *cli.Context, e *console.Env) error {
	held, err := console.AskAdmin(c, e, (*adminapi.Client).HeldKeys)
	if err != nil {
		return err
	}
	switch {
	case c.Bool("delete") && len(held.IDs) > 0:
		named := console.Clean(strings.Join(held.IDs[:min(len(held.IDs), 10)], " "))
		if err := e.AskConsent(c, fmt.Sprintf("delete %s: %s?", wording.Plural(len(held.IDs), "key"), named)); err != nil {
			return err
		}
		return decideKeys(e, c, held.IDs, adminapi.KeyDeleted)
	case c.Bool("keep"):
		if held, err = console.AskAdmin(c, e, (*adminapi.Client).ForgetHeldKeys); err != nil {
			return err
		}
	}
	return e.PrintValue(c, held, func(s *console.Screen) {
		if len(held.IDs) == 0 {
			s.Line("no keys are held on %s", console.Clean(held.Node))
			return
		}
		for _, id := range held.IDs {
			s.Line("%s", console.Clean(id))
		}
		if c.Bool("keep") {
			s.Line("%s kept", wording.Plural(len(held.IDs), "key"))
			return
		}
		s.Line("%s restored; --delete deletes them in the whole cluster, --keep keeps them", wording.Plural(len(held.IDs), "key"))
	})
}

// decideKeys decides about keys in the whole cluster, some at a time.
func decideKeys(e *console.Env, c *cli.Context, ids []string, to string) error {
	var all adminapi.DecidedKeys
	for some := range slices.Chunk(ids, adminapi.MaxDecided) {
		done, err := console.AskAdmin(c, e,
			console.With((*adminapi.Client).DecideKeys, adminapi.DecideKeysRequest{State: to, IDs: some}))
		if err != nil {
			return err
		}
		all.Rev, all.Keys = done.Rev, append(all.Keys, done.Keys...)
	}
	return showDecided(e, c, all, to)
}
