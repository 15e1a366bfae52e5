package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newBootstrapCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "bootstrap",
		Usage: "create a new cluster from this node and its salt-master's key",
		Description: "Run it once for each cluster, on its first node. The salt-master's master.pem becomes the cluster's identity, so minions\n" +
			"that know this master need no change. For other nodes use saltclusterctl join.",
		Flags: console.WaitFlags(),
		Action: func(c *cli.Context) error {
			if err := console.NoArgs(c); err != nil {
				return err
			}
			return runBootstrap(c, e)
		},
	})
}

func runBootstrap(c *cli.Context, e *console.Env) error {
	if err := console.CheckOperation(c); err != nil {
		return err
	}
	r := adminapi.BootstrapRequest{Wait: c.Bool("wait"), Timeout: c.Duration("timeout")}
	return console.RunOperation(c, e, func(ctx context.Context, client *adminapi.Client,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Bootstrap(ctx, r, p)
	})
}
