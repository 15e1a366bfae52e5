package console

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

// replyMargin is added to --timeout, so that the daemon's own, better worded
// answer comes first.
const replyMargin = 10 * time.Second

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

// Operation is a long operation of the admin API.
type Operation func(*adminapi.Client, context.Context, func(adminapi.Progress)) (adminapi.Outcome, error)

// ForRequest is the operation that a request asks for.
func ForRequest[Q any](call func(*adminapi.Client, context.Context, Q, func(adminapi.Progress)) (adminapi.Outcome,
	error), q Q) Operation {
	return func(client *adminapi.Client, ctx context.Context, p func(adminapi.Progress)) (adminapi.Outcome, error) {
		return call(client, ctx, q, p)
	}
}

// Operate runs a long operation, showing its progress on standard error.
func Operate(c *cli.Context, e *Env, op Operation) (adminapi.Outcome, error) {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if t := c.Duration("timeout"); t > 0 {
		ctx, cancel = context.WithTimeout(ctx, t+replyMargin)
	}
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	t := NewProgressBar(e)
	defer t.EndBar()
	return op(client, ctx, t.ShowStep)
}

// RunOperation is Operate, with the outcome on standard output.
func RunOperation(c *cli.Context, e *Env, op Operation) error {
	outcome, err := Operate(c, e, op)
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

// checkFlags refuses values that no command can have.
func checkFlags(c *cli.Context) error {
	if c.Duration("timeout") < 0 {
		return Usagef("--timeout 2m", "a timeout cannot be negative")
	}
	return checkFormat(c.String("out"))
}

// askTimeout bounds every verb that only asks, unless --timeout says otherwise; the daemon's own limit is shorter.
const AskTimeout = 15 * time.Second

// Question is a verb of the admin API that answers at once.
type Question[T any] func(*adminapi.Client, context.Context) (T, error)

// With is the question that a verb with a parameter asks.
func With[Q, T any](call func(*adminapi.Client, context.Context, Q) (T, error), q Q) Question[T] {
	return func(client *adminapi.Client, ctx context.Context) (T, error) { return call(client, ctx, q) }
}

// AskAdmin asks for at most --timeout, or AskTimeout.
func AskAdmin[T any](c *cli.Context, e *Env, ask Question[T]) (T, error) {
	limit := cmp.Or(c.Duration("timeout"), AskTimeout)
	return askFor(c, e, limit, ask, fmt.Sprintf("saltclusterd's answer, for %s at most (--timeout)", limit))
}

// AskLong asks something that takes a while. Without --timeout it waits for ever.
func AskLong[T any](c *cli.Context, e *Env, ask Question[T], waiting string) (T, error) {
	return askFor(c, e, c.Duration("timeout"), ask, waiting)
}

func askFor[T any](c *cli.Context, e *Env, limit time.Duration, ask Question[T], waiting string) (T, error) {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	client := e.OpenClient(c)
	defer client.Close()
	defer e.ShowWaiting("%s", waiting)()
	return ask(client, ctx)
}

// ShowAnswer asks, and prints the answer.
func ShowAnswer[T any](c *cli.Context, e *Env, ask Question[T], screen func(*Screen, T)) error {
	v, err := AskAdmin(c, e, ask)
	if err != nil {
		return err
	}
	return e.PrintValue(c, v, func(s *Screen) { screen(s, v) })
}

// OpenClient finds the socket: flag, environment, configuration, default. A
// configuration that cannot be read (it may hold a secret) or is broken does
// not matter here.
func (e *Env) OpenClient(c *cli.Context) *adminapi.Client {
	path := c.String("socket")
	if path == "" {
		path = e.variable("SOCKET")
	}
	if path == "" {
		cfg, _ := config.Read(e.ConfigPath(c))
		path = cfg.Paths.AdminSocket
	}
	return adminapi.NewClient(path)
}
