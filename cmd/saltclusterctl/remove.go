package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newRemoveCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:      "remove",
		Usage:     "take NODE out of the cluster for good, dead or alive, on any node",
		ArgsUsage: "NODE",
		Description: "Its certificate is refused everywhere at once, its share of the ring goes to the others, and it stops serving minions.\n" +
			"Nothing has to be restarted. To come back it has to join again. What would cost the cluster its majority is refused.\n" +
			"It asks before, unless --yes is given.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "remove it also when the rest is not a majority any more"},
			dryRunFlag(),
			yesFlag(),
			waitFlag("nothing is left of it; --wait=false returns as soon as it is off the roster"),
			timeoutFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl members lists them", "remove takes one argument, the id of a node")
			}
			if c.Bool("dry-run") {
				return showForecast(c, e, func(st adminapi.Status,
					m adminapi.Member) forecast {
					return removeForecast(st, m, c.Bool("force"))
				})
			}
			return runRemove(c, e)
		},
	})
}

func runRemove(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	if err := e.askConsent(c, fmt.Sprintf("take %s out of the cluster for good?", clean(c.Args().First()))); err != nil {
		return err
	}
	r := adminapi.RemoveRequest{Node: c.Args().First(), Force: c.Bool("force"), NoWait: !c.Bool("wait"),
		Timeout: c.Duration("timeout")}
	return runOperation(c, e, func(ctx context.Context, client *adminapi.Client,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Remove(ctx, r, p)
	})
}
