package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newUpgradeCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "upgrade",
		Usage: "replace the running saltclusterd with a new process; minions keep their connections",
		Description: "The new process rereads the configuration, so changes of it take effect as well. If the new process fails before it has taken\n" +
			"over, the running one continues unchanged, and the exit code shows the failure.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "binary",
				Usage: "start `PATH` instead of the program the running saltclusterd was started as"},
			&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until the new process answers"},
			&cli.DurationFlag{Name: "timeout", Value: 2 * time.Minute, Usage: "give up after `TIME`; 0: never"},
		},
		Action: console.WithoutArgs(e, runUpgrade),
	})
}

func runUpgrade(c *cli.Context, e *console.Env) error {
	r := adminapi.UpgradeRequest{Timeout: c.Duration("timeout")}
	if path := c.String("binary"); path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("--binary: %w", err)
		}
		r.Binary = abs
	}
	return console.RunOperation(c, e, func(client *adminapi.Client, ctx context.Context,
		p func(adminapi.Progress)) (adminapi.Outcome, error) {
		if !c.Bool("wait") {
			return client.Upgrade(ctx, r, p)
		}
		next := e.OpenClient(c)
		defer next.Close()
		return upgradeDaemon(ctx, client, next, r, p)
	})
}

// upgradeDaemon has the daemon replaced, and waits until the new process answers on another client's connections.
func upgradeDaemon(ctx context.Context, client, next *adminapi.Client, r adminapi.UpgradeRequest,
	p func(adminapi.Progress)) (adminapi.Outcome, error) {
	before, err := client.Version(ctx)
	if err != nil {
		return adminapi.Outcome{}, err
	}
	outcome, err := client.Upgrade(ctx, r, p)
	if err == nil {
		err = awaitProcess(ctx, next, before, outcome.PID)
	}
	return outcome, err
}

// askAgain is the pause between two questions who answers.
const askAgain = 50 * time.Millisecond

// awaitProcess waits until another process than before answers, or the same one as another program: saying that it
// serves and serving are two things. pid is the new process's where the old one knows it, else 0.
func awaitProcess(ctx context.Context, client *adminapi.Client, before adminapi.Version, pid int) error {
	for {
		v, err := client.Version(ctx)
		client.Close() // the next question must not go to the old process again
		if err == nil && (v.PID != before.PID || v.Started != before.Started) && (pid == 0 || v.PID == pid) {
			return nil
		}
		if !backoff.Sleep(ctx, askAgain) {
			return adminapi.Errorf(adminapi.CodeTimeout, "see its log: journalctl -u saltclusterd",
				"the new process does not answer; the last answer came from process %d, which was asked to stop (%v)", v.PID, err)
		}
	}
}
