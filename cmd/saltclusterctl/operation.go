package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

// replyMargin is added to --timeout, so that the daemon's own, better worded
// answer comes first.
const replyMargin = 10 * time.Second

// waitFlags are those of every long operation.
func waitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Value: true,
			Usage: "wait until the node is a member and ready; --wait=false returns as soon as it is decided"},
		timeoutFlag(),
	}
}

func waitFlag(until string) cli.Flag {
	return &cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until " + until}
}

func timeoutFlag() cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Value: 2 * time.Minute, Usage: "give up waiting after `TIME`; 0: never"}
}

// runOperation runs a long operation, showing its progress on standard error and
// its outcome on standard output.
func runOperation(c *cli.Context, e *env,
	call func(context.Context, *adminapi.Client, func(adminapi.Progress)) (adminapi.Outcome, error),
) error {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if t := c.Duration("timeout"); t > 0 {
		ctx, cancel = context.WithTimeout(ctx, t+replyMargin)
	}
	defer cancel()
	client := e.openClient(c)
	defer client.Close()
	t := &progressBar{e: e}
	outcome, err := call(ctx, client, t.showStep)
	t.endBar()
	if err != nil {
		return err
	}
	return e.printValue(c, outcome, func(s *screen) { outcomeText(s, outcome) })
}

func outcomeText(s *screen, o adminapi.Outcome) {
	s.line("%s", s.paint(green, clean(o.Message)))
	nextSteps(s, o.Next)
}

func nextSteps(s *screen, steps []string) {
	if len(steps) == 0 {
		return
	}
	s.line("next:")
	printSteps(s, steps)
}

func printSteps(s *screen, steps []string) {
	for i, step := range steps {
		s.line("  %d. %s", i+1, clean(step))
	}
}

func checkOperation(c *cli.Context) error {
	if c.Duration("timeout") < 0 {
		return usagef("--timeout 2m", "a timeout cannot be negative")
	}
	return checkFormat(c.String("out"))
}
