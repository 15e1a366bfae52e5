package main

import (
	"context"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newTransferCommand(e *env) *cli.Command {
	return verb(&cli.Command{
		Name:      "transfer",
		Usage:     "hand the leadership over, to NODE or to whoever is fit",
		ArgsUsage: "[NODE]",
		Flags:     []cli.Flag{timeoutFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return usagef("saltclusterctl transfer m2", "transfer takes at most one argument, the id of a node")
			}
			return runTransfer(c, e)
		},
	})
}

func runTransfer(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	r := adminapi.TransferRequest{To: c.Args().First(), Timeout: c.Duration("timeout")}
	return operate(c, e, func(ctx context.Context, client *adminapi.Client, p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Transfer(ctx, r, p)
	})
}
