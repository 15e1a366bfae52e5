package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newLeaveCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "leave",
		Usage: "remove this node from its cluster, and give the ports back to its salt-master",
		Description: "The other members take over the minions of this node, which is removed from the member list; the last member of a cluster\n" +
			"just stops. The drop-in that keeps the salt-master on loopback is removed, and the restarts that are needed are printed. The\n" +
			"salt-master keeps its key, and all minion keys, caches, jobs and roots as the cluster has them.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "restore-master",
				Usage: "required, to confirm this; saltclusterctl remove only removes a node from the cluster"},
			&cli.BoolFlag{Name: "dry-run", Usage: "only check, and show what would be done"},
			&cli.BoolFlag{Name: "force", Usage: "continue even if a check fails"},
			console.WideFlag(),
			console.YesFlag(),
			console.TimeoutFlag(),
		}, adopt.HostFlags()...),
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			if !c.Bool("restore-master") {
				return console.Usagef("saltclusterctl leave --restore-master; to only take a node out of the cluster: saltclusterctl remove NODE",
					"leave gives the ports back to the salt-master: add --restore-master")
			}
			return runLeave(c, e)
		}),
	})
}

// left is what the verb shows.
type left struct {
	adopt.Leaving
	Done bool `json:"done"`
}

func runLeave(c *cli.Context, e *console.Env) error {
	site, err := adopt.InspectSite(e, c)
	if err != nil {
		return err
	}
	out := left{Leaving: site.Leaving(compareNodes(e, c, site))}
	blocked := out.Failed() > 0 && !c.Bool("force")
	if c.Bool("dry-run") || blocked {
		if err := e.PrintValue(c, out, func(s *console.Screen) { leaveScreen(s, out) }); err != nil {
			return err
		}
		return setupResult(out.Failed(), c.Bool("dry-run"))
	}
	shown := !c.Bool("yes")
	if shown {
		s := e.NewScreenOf(c)
		checkLines(s, out.Checks)
		fmt.Fprint(e.Stderr, s.String())
		if err := e.AskConsent(c, leaveQuestion(out)); err != nil {
			return err
		}
	}
	if len(out.Others) > 0 {
		if err := removeSelf(e, c, out.Node); err != nil {
			return err
		}
	}
	if err := out.Restore(); err != nil {
		return err
	}
	out.Done = true
	return e.PrintValue(c, out, func(s *console.Screen) {
		if !shown {
			checkLines(s, out.Checks)
		}
		leaveSteps(s, out)
	})
}

func leaveQuestion(l left) string {
	if len(l.Others) > 0 {
		return fmt.Sprintf("remove %s from the cluster, and remove its drop-in?", l.Node)
	}
	return "remove the drop-in?"
}

// compareNodes has the nodes compared; nil when that is not possible.
func compareNodes(e *console.Env, c *cli.Context, site *adopt.Site) *adminapi.Verification {
	if site.Status == nil || site.Status.Cluster == nil {
		return nil
	}
	fmt.Fprintln(e.Stderr, "verify: comparing the data of the nodes")
	v, err := console.AskAdmin(c, e, (*adminapi.Client).Verify)
	if err != nil {
		return nil
	}
	return &v
}

// removeSelf lets the minions go to the others, and takes this node off the roster.
func removeSelf(e *console.Env, c *cli.Context, node string) error {
	_, err := console.Operate(c, e, console.ForRequest((*adminapi.Client).Remove,
		adminapi.RemoveRequest{Node: node, Timeout: c.Duration("timeout")}))
	return err
}

func leaveScreen(s *console.Screen, l left) {
	checkLines(s, l.Checks)
	leaveSteps(s, l)
}

// leaveSteps is what comes after the checks.
func leaveSteps(s *console.Screen, l left) {
	would := "would be "
	if l.Done {
		would = ""
	}
	switch {
	case !l.Done && l.Failed() > 0:
		s.Line("%s", s.Paint(console.Red, fmt.Sprintf("%s to solve first; nothing was changed", wording.Plural(l.Failed(), "failure"))))
		return
	case l.Aside != "":
		s.Wrapped("", "%srenamed: %s to %s, because saltclusterd did not write it", would, console.Clean(l.Remove), console.Clean(l.Aside))
	case l.Remove != "":
		s.Wrapped("", "%sremoved: %s", would, console.Clean(l.Remove))
	}
	if !l.Done {
		s.Line("nothing was changed; after leave:")
		console.PrintSteps(s, l.Next)
		return
	}
	console.NextSteps(s, l.Next)
}
