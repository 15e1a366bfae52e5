package main

import (
	"context"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newRotateCommand(e *env) *cli.Command {
	return verb(&cli.Command{
		Name:  "rotate",
		Usage: "put a new AES key for publications in force; minions are moved to it over rotate_window",
		Flags: []cli.Flag{timeoutFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("saltclusterctl rotate", "rotate takes no arguments")
			}
			return runRotate(c, e)
		},
	})
}

func runRotate(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	r := adminapi.RotateRequest{Timeout: c.Duration("timeout")}
	return operate(c, e, func(ctx context.Context, client *adminapi.Client, p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return client.Rotate(ctx, r, p)
	})
}
