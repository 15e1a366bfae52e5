package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// startTimeout bounds each step of setup --start, and the wait for a healthy node.
const startTimeout = 5 * time.Minute

// starter takes the steps that setup prints otherwise.
type starter struct {
	c     *cli.Context
	e     *console.Env
	steps []adopt.Step
	token adminapi.Secret // to join with; empty: the configuration has a secret or a token
}

// newStarter asks for all that the steps need, before anything is changed.
func newStarter(e *console.Env, c *cli.Context, steps []adopt.Step) (starter, error) {
	st := starter{c: c, e: e, steps: steps}
	if !e.HasServices() {
		return st, console.Refusedf("leave --start out; setup then prints what to start and restart",
			"no service manager was found on this host")
	}
	i := slices.IndexFunc(steps, func(s adopt.Step) bool { return s.Kind == adopt.Join })
	if i < 0 {
		return st, nil
	}
	if c.String("join") == "" {
		return st, console.Usagef("saltclusterctl setup --start --join PEER", "--start needs --join to join a cluster")
	}
	var err error
	if st.token, err = readToken(e, c.String("token-file")); err != nil || st.token != "" || !steps[i].Token {
		return st, err
	}
	text, err := e.AskSecret("token for this node (on a member, saltclusterctl token create prints one): ")
	if err != nil {
		return st, err
	}
	if text == "" {
		return st, console.Usagef("on a member: saltclusterctl token create --file FILE; here: --token-file FILE",
			"joining needs a token; nothing was changed")
	}
	st.token, err = parseToken(text)
	return st, err
}

// runStart takes the steps, waits until the node is healthy, and shows its status.
func runStart(st starter, out setupDone) error {
	decided := false // by bootstrap or join, which run master_restart_command
	for _, step := range st.steps {
		if step.Kind == adopt.RestartMaster && len(step.Args) > 0 && decided {
			continue
		}
		decided = decided || step.Kind == adopt.Bootstrap || step.Kind == adopt.Join
		fmt.Fprintf(st.e.Stderr, "running: %s\n", console.Clean(step.Command))
		if err := st.take(step); err != nil {
			fmt.Fprintln(st.e.Stderr, "setup stopped at this command; repeat setup to continue from here")
			return err
		}
	}
	status, err := st.awaitHealthy()
	if err != nil {
		return err
	}
	out.Started = true
	return st.e.PrintValue(st.c, out, func(s *console.Screen) { statusScreen(s, status, time.Now()) })
}

func (st starter) take(step adopt.Step) error {
	ctx, cancel := context.WithTimeout(st.c.Context, startTimeout)
	defer cancel()
	client := st.e.OpenClient(st.c)
	defer client.Close()
	bar := console.NewProgressBar(st.e)
	defer bar.EndBar()
	var err error
	switch step.Kind {
	case adopt.OpenRoot:
		err = console.RunCommand(ctx, step.Args...)
	case adopt.StartDaemon:
		if err = st.e.RunService(ctx, step.Command); err == nil {
			err = awaitDaemon(ctx, client)
		}
	case adopt.UpgradeDaemon:
		next := st.e.OpenClient(st.c)
		defer next.Close()
		_, err = upgradeDaemon(ctx, client, next, adminapi.UpgradeRequest{Timeout: startTimeout}, bar.ShowStep)
	case adopt.Bootstrap:
		_, err = client.Bootstrap(ctx, adminapi.BootstrapRequest{Wait: true, Timeout: startTimeout}, bar.ShowStep)
	case adopt.Join:
		_, err = client.Join(ctx, adminapi.JoinRequest{Peer: st.c.String("join"), Token: st.token, Wait: true,
			Timeout: startTimeout}, bar.ShowStep)
	case adopt.RestartMaster:
		if len(step.Args) > 0 {
			if err = console.RunCommand(ctx, step.Args...); err != nil {
				err = fmt.Errorf("master_restart_command failed: %w", err)
			}
		} else {
			err = st.e.RunService(ctx, step.Command)
		}
	}
	return err
}

// awaitDaemon waits until saltclusterd answers.
func awaitDaemon(ctx context.Context, client *adminapi.Client) error {
	for {
		_, err := client.Version(ctx)
		if err == nil || !backoff.Sleep(ctx, askAgain) {
			return err
		}
	}
}

// isHealthy says what status --check does, and that the node is done with joining and serves with its own salt-master.
func isHealthy(st adminapi.Status) bool {
	u := st.Node.Upstream
	isNew := slices.ContainsFunc(st.Members, func(m adminapi.Member) bool {
		return m.Self && m.Role == adminapi.RoleLearner
	})
	isStarting := slices.ContainsFunc(st.Node.Reasons, func(r adminapi.Reason) bool { return r.Check == "master" })
	return st.Node.Ready && u.Up && u.Subscribed && u.SignedIn && !isNew && !isStarting && !hasFailure(st)
}

// awaitHealthy waits until the node is healthy.
func (st starter) awaitHealthy() (adminapi.Status, error) {
	ctx, cancel := context.WithTimeout(st.c.Context, startTimeout)
	defer cancel()
	defer st.e.ShowWaiting("a healthy node, for %s at most", startTimeout)()
	client := st.e.OpenClient(st.c)
	defer client.Close()
	for {
		status, err := client.Status(ctx)
		if err == nil && isHealthy(status) {
			return status, nil
		}
		if !backoff.Sleep(ctx, askAgain) {
			return status, adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl status; saltclusterctl doctor",
				"all commands were run, but this node is not healthy after %s", startTimeout)
		}
	}
}
