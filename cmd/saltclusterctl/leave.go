package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/sidecar/adminapi"
)

func newLeaveCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "leave",
		Usage: "take this node out of its cluster, and give the ports back to its salt-master",
		Description: "Other members get the minions of this node, and it is taken off their roster; the last one just ends. The drop-in that keeps\n" +
			"the salt-master on loopback is removed. What saltclusterd and salt-master have to be restarted for is printed. The salt-master\n" +
			"keeps its key, all minion keys, caches, jobs and roots as the cluster has them.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "restore-master",
				Usage: "needed, because that is what it does; saltclusterctl remove only takes a node out of the cluster"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only look, and say what would be done"},
			&cli.BoolFlag{Name: "force", Usage: "also when something is in the way"},
			yesFlag(),
			timeoutFlag(),
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if !c.Bool("restore-master") {
				return usagef("saltclusterctl leave --restore-master; to only take a node out of the cluster: saltclusterctl remove NODE",
					"leave gives the ports back to the salt-master: add --restore-master")
			}
			return runLeave(c, e)
		},
	})
}

// left is what the verb shows.
type left struct {
	adopt.Leaving
	Done bool `json:"done"`
}

func runLeave(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	site, err := e.inspectSite(c)
	if err != nil {
		return err
	}
	out := left{Leaving: site.Leaving(e.compareNodes(c, site))}
	blocked := out.Failed() > 0 && !c.Bool("force")
	if c.Bool("dry-run") || blocked {
		if err := e.printValue(c, out, func(s *screen) { leaveScreen(s, out) }); err != nil {
			return err
		}
		return setupResult(out.Failed(), c.Bool("dry-run"))
	}
	shown := !c.Bool("yes")
	if shown {
		s := &screen{colour: e.colour}
		checkLines(s, out.Checks)
		fmt.Fprint(e.stderr, s.b.String())
		if err := e.askConsent(c, leaveQuestion(out)); err != nil {
			return err
		}
	}
	if len(out.Others) > 0 {
		if err := e.removeSelf(c, out.Node); err != nil {
			return err
		}
	}
	if err := out.Restore(); err != nil {
		return err
	}
	out.Done = true
	return e.printValue(c, out, func(s *screen) {
		if !shown {
			checkLines(s, out.Checks)
		}
		leaveSteps(s, out)
	})
}

func leaveQuestion(l left) string {
	if len(l.Others) > 0 {
		return fmt.Sprintf("take %s out of the cluster, and its drop-in away?", l.Node)
	}
	return "take the drop-in away?"
}

// compareNodes has the nodes compared; nil when that is not possible.
func (e *env) compareNodes(c *cli.Context, site *adopt.Site) *adminapi.Verification {
	if site.Status == nil || site.Status.Cluster == nil {
		return nil
	}
	fmt.Fprintln(e.stderr, "verify: comparing what the nodes hold")
	v, err := askAdmin(c, e, (*adminapi.Client).Verify)
	if err != nil {
		return nil
	}
	return &v
}

// removeSelf lets the minions go to the others, and takes this node off the roster.
func (e *env) removeSelf(c *cli.Context, node string) error {
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if t := c.Duration("timeout"); t > 0 {
		ctx, cancel = context.WithTimeout(ctx, t+replyMargin)
	}
	defer cancel()
	client := e.openClient(c)
	defer client.Close()
	t := &progressBar{e: e}
	_, err := client.Remove(ctx, adminapi.RemoveRequest{Node: node, Timeout: c.Duration("timeout")}, t.showStep)
	t.endBar()
	return err
}

func leaveScreen(s *screen, l left) {
	checkLines(s, l.Checks)
	leaveSteps(s, l)
}

// leaveSteps is what comes after the checks.
func leaveSteps(s *screen, l left) {
	would := "would be "
	if l.Done {
		would = ""
	}
	switch {
	case !l.Done && l.Failed() > 0:
		s.line("%s", s.paint(red, fmt.Sprintf("%s in the way; nothing was changed", plural(l.Failed(), "thing"))))
		return
	case l.Aside != "":
		s.line("%srenamed: %s to %s, because another user or program wrote it", would, clean(l.Remove), clean(l.Aside))
	case l.Remove != "":
		s.line("%sremoved: %s", would, clean(l.Remove))
	}
	if !l.Done {
		s.line("nothing was changed; after leave:")
		printSteps(s, l.Next)
		return
	}
	nextSteps(s, l.Next)
}
