package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/sidecar/adminapi"
)

func newSetupCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "setup",
		Usage: "make room for saltclusterd beside this host's salt-master, and say what to restart in which order",
		Description: "Looks first, and changes nothing unless all is well: then it writes one drop-in, which moves the salt-master to loopback,\n" +
			"and what saltclusterd's own configuration lacks. It restarts nothing, but prints the commands that are left; run again\n" +
			"after any of them it prints the rest. The salt-master's key, minion keys and caches stay as they are, and minions need\n" +
			"no change: they connect anew once, as when a salt-master is restarted. Further masters of the same minions, and new ones, become\n" +
			"nodes with --join; keys collect and keys merge bring along what minions they have accepted.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "only look; exit code 10 when something is in the way"},
			&cli.BoolFlag{Name: "dry-run", Usage: "look, and show what would be written"},
			yesFlag(),
			&cli.StringFlag{Name: "node", Usage: "`ID` of this node; default: the host's name"},
			&cli.StringFlag{Name: "join",
				Usage: "this master becomes a node of the cluster that `PEER` belongs to, instead of founding one"},
			&cli.StringFlag{Name: "cluster-id", Usage: "`NAME` of the cluster, the same on every node; default: salt"},
		}, hostFlags()...),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runSetup(c, e)
		},
	})
}

// hostFlags say where this host's salt-master is.
func hostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config-dir", Aliases: []string{"c"},
			Usage: "`DIR` with the files master and saltclusterd; default: /etc/salt"},
		&cli.StringFlag{Name: "salt-master", Usage: "`PROGRAM`, where it is not in $PATH"},
	}
}

// inspectSite looks at this host. A daemon that does not answer is one that does not run.
func (e *env) inspectSite(c *cli.Context) (*adopt.Site, error) {
	a := adopt.Asked{Own: e.configPath(c), Command: c.String("salt-master"), Node: c.String("node"),
		ClusterID: c.String("cluster-id"), Join: c.String("join"), Proc: "/proc"}
	if dir := c.String("config-dir"); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		a.Master = filepath.Join(dir, "master")
		if !c.IsSet("config") {
			a.Own = filepath.Join(dir, "saltclusterd")
		}
	}
	if err := c.Set("config", a.Own); err != nil { // the socket is found by it
		return nil, err
	}
	var status *adminapi.Status
	if st, err := askAdmin(c, e, (*adminapi.Client).Status); err == nil {
		status = &st
	}
	site, err := adopt.Look(c.Context, a, status)
	if err != nil {
		return nil, refusedf("--salt-master PROGRAM and --config-dir DIR say where it is", "%v", err)
	}
	return site, nil
}

// setupDone is what the verb shows.
type setupDone struct {
	adopt.Plan
	Written bool `json:"written"`
}

func runSetup(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	site, err := e.inspectSite(c)
	if err != nil {
		return err
	}
	out := setupDone{Plan: site.Plan()}
	only := c.Bool("check") || c.Bool("dry-run")
	if only || out.Failed() > 0 || len(out.Files) == 0 {
		if err := e.printValue(c, out, func(s *screen) { setupScreen(s, out, c.Bool("dry-run"), only) }); err != nil {
			return err
		}
		return setupResult(out.Failed(), only)
	}
	shown := !c.Bool("yes")
	if shown {
		s := &screen{colour: e.colour}
		checkLines(s, out.Checks)
		fileLines(s, out.Files, "to be written:", false)
		fmt.Fprint(e.stderr, s.b.String())
		if err := e.askConsent(c, fmt.Sprintf("write %s?", plural(len(out.Files), "file"))); err != nil {
			return err
		}
	}
	if err := adopt.Write(site.Asked.Own, out.Files); err != nil {
		return err
	}
	out.Written = true
	return e.printValue(c, out, func(s *screen) {
		if !shown {
			checkLines(s, out.Checks)
		}
		setupSteps(s, out, false, false)
	})
}

func setupResult(failed int, only bool) error {
	switch {
	case failed > 0 && only:
		return &silentError{exitProblems}
	case failed > 0:
		return &silentError{exitRefused}
	}
	return nil
}

func setupScreen(s *screen, out setupDone, whole, only bool) {
	checkLines(s, out.Checks)
	setupSteps(s, out, whole, only)
}

// setupSteps is what comes after the checks.
func setupSteps(s *screen, out setupDone, whole, only bool) {
	switch {
	case out.Failed() > 0:
		s.line("%s", s.paint(red, fmt.Sprintf("%s in the way; nothing was changed", plural(out.Failed(), "thing"))))
		return
	case out.Written:
		fileLines(s, out.Files, "written:", false)
	case len(out.Files) > 0:
		fileLines(s, out.Files, "would be written:", whole)
	}
	switch {
	case len(out.Next) == 0:
		s.line("%s", s.paint(green, "nothing is left to do"))
	case only:
		s.line("nothing was changed; after setup:")
		printSteps(s, out.Next)
	default:
		nextSteps(s, out.Next)
	}
}

func checkLines(s *screen, checks []doctor.Finding) {
	for _, f := range checks {
		findingLines(s, f)
	}
}

func fileLines(s *screen, files []adopt.File, head string, whole bool) {
	s.line("%s", head)
	for _, f := range files {
		s.line("  %s  (%s)", clean(f.Path), clean(f.What))
		if !whole {
			continue
		}
		for line := range strings.Lines(f.Text) {
			s.line("      %s", clean(strings.TrimSuffix(line, "\n")))
		}
		if f.Secret {
			s.line("      (is not shown)")
		}
	}
}
