package console

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

// replyMargin is added to --timeout, so that the daemon's own, better worded
// answer comes first.
const ReplyMargin = 10 * time.Second

// WaitFlags are those of every long operation.
func WaitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Value: true,
			Usage: "wait until the node is a member and ready; --wait=false returns as soon as it is decided"},
		TimeoutFlag(),
	}
}

// WaitFlag is the flag of a verb that waits until something is done.
func WaitFlag(until string) cli.Flag {
	return &cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until " + until}
}

// TimeoutFlag is the flag of a verb that waits.
func TimeoutFlag() cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Value: 2 * time.Minute, Usage: "give up waiting after `TIME`; 0: never"}
}

// RunOperation runs a long operation, showing its progress on standard error and
// its outcome on standard output.
func RunOperation(c *cli.Context, e *Env,
	call func(context.Context, *adminapi.Client, func(adminapi.Progress)) (adminapi.Outcome, error),
) error {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if t := c.Duration("timeout"); t > 0 {
		ctx, cancel = context.WithTimeout(ctx, t+ReplyMargin)
	}
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	t := NewProgressBar(e)
	outcome, err := call(ctx, client, t.ShowStep)
	t.EndBar()
	if err != nil {
		return err
	}
	return e.PrintValue(c, outcome, func(s *Screen) { OutcomeText(s, outcome) })
}

// OutcomeText prints the outcome of an operation.
func OutcomeText(s *Screen, o adminapi.Outcome) {
	s.Wrapped("", "%s", s.Paint(Green, Clean(o.Message)))
	NextSteps(s, o.Next)
}

// NextSteps prints what an operator has to do next.
func NextSteps(s *Screen, steps []string) {
	if len(steps) == 0 {
		return
	}
	s.Line("next:")
	PrintSteps(s, steps)
}

// PrintSteps prints steps with their numbers.
func PrintSteps(s *Screen, steps []string) {
	for i, step := range steps {
		s.Wrapped(fmt.Sprintf("  %d. ", i+1), "%s", Clean(step))
	}
}

// CheckOperation refuses flags that no operation can have.
func CheckOperation(c *cli.Context) error {
	if c.Duration("timeout") < 0 {
		return Usagef("--timeout 2m", "a timeout cannot be negative")
	}
	return CheckFormat(c.String("out"))
}

// askTimeout bounds every verb that only asks, unless --timeout says otherwise; the daemon's own limit is shorter.
const AskTimeout = 15 * time.Second

// AskAdmin calls a reading verb of the admin API.
func AskAdmin[T any](c *cli.Context, e *Env, call func(*adminapi.Client, context.Context) (T, error)) (T, error) {
	var none T
	if err := CheckOperation(c); err != nil {
		return none, err
	}
	limit := c.Duration("timeout")
	if limit == 0 {
		limit = AskTimeout
	}
	ctx, cancel := context.WithTimeout(c.Context, limit)
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	defer e.ShowWaiting("saltclusterd's answer, for %s at most (--timeout)", limit)()
	return call(client, ctx)
}

// OpenClient finds the socket: flag, environment, configuration, default. A
// configuration that cannot be read (it may hold a secret) or is broken does
// not matter here.
func (e *Env) OpenClient(c *cli.Context) *adminapi.Client {
	path := c.String("socket")
	if path == "" {
		path = e.Getenv("SALTCLUSTERD_SOCKET")
	}
	if path == "" {
		cfg, _ := config.Read(e.ConfigPath(c))
		path = cfg.Paths.AdminSocket
	}
	return adminapi.NewClient(path)
}
