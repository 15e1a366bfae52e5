package main

import (
	"context"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newBootstrapCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "bootstrap",
		Usage: "make a new cluster out of this node and its salt-master's key",
		Description: "Once in the life of a cluster, on its first node. The salt-master's master.pem becomes the cluster's identity,\n" +
			"so minions that know this master stay content. Other nodes: saltclusterctl join.",
		Flags: waitFlags(),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runBootstrap(c, e)
		},
	})
}

func runBootstrap(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	r := adminapi.BootstrapRequest{Wait: c.Bool("wait"), Timeout: c.Duration("timeout")}
	return runOperation(c, e, func(ctx context.Context, client *adminapi.Client,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Bootstrap(ctx, r, p)
	})
}
