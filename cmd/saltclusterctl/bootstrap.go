package main

import (
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
		Flags:  console.WaitFlags(),
		Action: console.WithoutArgs(e, runBootstrap),
	})
}

func runBootstrap(c *cli.Context, e *console.Env) error {
	r := adminapi.BootstrapRequest{Wait: c.Bool("wait"), Timeout: c.Duration("timeout")}
	return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Bootstrap, r))
}
