package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/sidecar/adminapi"
)

func newRemoveCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "remove",
		Usage:     "remove NODE from the cluster for good, whether it is up or down; works on any node",
		ArgsUsage: "NODE",
		Description: "All members refuse its certificate at once, the others take over its share of the ring, and it stops serving minions.\n" +
			"Nothing has to be restarted. To come back, it has to join again. The command refuses if the cluster would lose its majority.\n" +
			"It asks for confirmation unless --yes is given.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "force", Usage: "remove it even if the remaining nodes would not be a majority"},
			dryrun.DryRunFlag(),
			console.YesFlag(),
			console.WaitFlag("its removal is complete; --wait=false returns as soon as it is off the member list"),
			console.TimeoutFlag(),
		},
		Action: console.WithOneArg(e, "saltclusterctl members lists them",
			"remove takes one argument, the id of a node", func(c *cli.Context, e *console.Env) error {
				if c.Bool("dry-run") {
					return dryrun.ShowForecast(c, e, func(st adminapi.Status,
						m adminapi.Member) dryrun.Forecast {
						return dryrun.RemoveForecast(st, m, c.Bool("force"))
					})
				}
				return runRemove(c, e)
			}),
	})
}

func runRemove(c *cli.Context, e *console.Env) error {
	if err := e.AskConsent(c, fmt.Sprintf("remove %s from the cluster for good?", console.Clean(c.Args().First()))); err != nil {
		return err
	}
	r := adminapi.RemoveRequest{Node: c.Args().First(), Force: c.Bool("force"), NoWait: !c.Bool("wait"),
		Timeout: c.Duration("timeout")}
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Remove, r))
}
