package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/adopt"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/cmd/saltclusterd/wording"
)

func newSetupCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "setup",
		Usage: "prepare this host's salt-master to run beside saltclusterd, and show what to restart in which order",
		Description: "It checks first and changes nothing if a check fails. Then it writes one drop-in, which moves the salt-master to\n" +
			"loopback, and adds what is missing in saltclusterd's own configuration. It restarts nothing but prints the remaining\n" +
			"commands; after any of them, run it again to see the rest. With --start it runs them itself, and waits until the node is\n" +
			"healthy. The salt-master's key, minion keys and caches stay as they are. Minions need no change: they reconnect once, as\n" +
			"after a restart of the salt-master. Other masters become nodes with --join; keys collect and keys merge bring in the minion\n" +
			"keys that they have accepted.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "check", Usage: "only check; exit code 10 when a check fails"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check, and show what would be written"},
			console.WideFlag(),
			console.YesFlag(),
			&cli.BoolFlag{Name: "start",
				Usage: "then run the remaining commands: start saltclusterd, bootstrap or join, restart the salt-master"},
			&cli.StringFlag{Name: "token-file",
				Usage: "with --start: join with the one-time token in `FILE` (- is standard input); default: ask for it"},
			&cli.StringFlag{Name: "node", Usage: "`ID` of this node; default: the host's name"},
			&cli.StringFlag{Name: "join",
				Usage: "this master becomes a node of the cluster that `PEER` belongs to, instead of creating one"},
			&cli.StringFlag{Name: "cluster-id", Usage: "`NAME` of the cluster, the same on every node; default: salt"},
		}, adopt.HostFlags()...),
		Action: console.WithoutArgs(e, runSetup),
	})
}

// setupDone is what the verb shows.
type setupDone struct {
	adopt.Plan
	Written bool `json:"written"`
	Started bool `json:"started,omitempty"` // the steps of Next were taken
}

func runSetup(c *cli.Context, e *console.Env) error {
	start := c.Bool("start")
	if c.String("token-file") != "" && !start {
		return console.Usagef("saltclusterctl setup --start --join PEER --token-file FILE", "--token-file needs --start")
	}
	site, err := adopt.InspectSite(e, c)
	if err != nil {
		return err
	}
	out := setupDone{Plan: site.Plan()}
	only := c.Bool("check") || c.Bool("dry-run")
	isDone := len(out.Files) == 0 && (!start || len(out.Steps) == 0)
	if only || out.Failed() > 0 || isDone {
		if err := e.PrintValue(c, out, func(s *console.Screen) { setupScreen(s, out, c.Bool("dry-run"), only) }); err != nil {
			return err
		}
		return setupResult(out.Failed(), only)
	}
	shown := !c.Bool("yes")
	if shown {
		if err := askSetup(e, c, out, start); err != nil {
			return err
		}
	}
	var st starter
	if start {
		if st, err = newStarter(e, c, out.Steps); err != nil {
			return err
		}
	}
	if err := adopt.Write(site.Asked.Own, out.Files); err != nil {
		return err
	}
	out.Written = len(out.Files) > 0
	if start {
		return runStart(st, out)
	}
	return e.PrintValue(c, out, func(s *console.Screen) {
		if !shown {
			checkLines(s, out.Checks)
		}
		setupSteps(s, out, false, false)
	})
}

// askSetup shows what setup will do, and asks for consent.
func askSetup(e *console.Env, c *cli.Context, out setupDone, start bool) error {
	s := e.NewScreenOf(c)
	checkLines(s, out.Checks)
	var parts []string
	if n := len(out.Files); n > 0 {
		fileLines(s, out.Files, "will be written:", false)
		parts = append(parts, "write "+wording.Plural(n, "file"))
	}
	if start && len(out.Steps) > 0 {
		s.Line("will be run:")
		console.PrintSteps(s, out.Next)
		parts = append(parts, "run these commands")
	}
	fmt.Fprint(e.Stderr, s.String())
	return e.AskConsent(c, strings.Join(parts, " and ")+"?")
}

func setupResult(failed int, only bool) error {
	switch {
	case failed > 0 && only:
		return console.SilentError(console.ExitProblems)
	case failed > 0:
		return console.SilentError(console.ExitRefused)
	}
	return nil
}

func setupScreen(s *console.Screen, out setupDone, whole, only bool) {
	checkLines(s, out.Checks)
	setupSteps(s, out, whole, only)
}

// setupSteps is what comes after the checks.
func setupSteps(s *console.Screen, out setupDone, whole, only bool) {
	switch {
	case out.Failed() > 0:
		s.Line("%s", s.Paint(console.Red, fmt.Sprintf("%s to solve first; nothing was changed", wording.Plural(out.Failed(), "failure"))))
		return
	case out.Written:
		fileLines(s, out.Files, "written:", false)
	case len(out.Files) > 0:
		fileLines(s, out.Files, "would be written:", whole)
	}
	switch {
	case len(out.Next) == 0:
		s.Line("%s", s.Paint(console.Green, "nothing is left to do"))
	case only:
		s.Line("nothing was changed; after setup:")
		console.PrintSteps(s, out.Next)
	default:
		console.NextSteps(s, out.Next)
	}
}

func checkLines(s *console.Screen, checks []doctor.Finding) {
	for _, f := range checks {
		support.FindingLines(s, f)
	}
}

func fileLines(s *console.Screen, files []adopt.File, head string, whole bool) {
	s.Line("%s", head)
	for _, f := range files {
		s.Wrapped("  ", "%s  (%s)", console.Clean(f.Path), console.Clean(f.What))
		if !whole {
			continue
		}
		for line := range strings.Lines(f.Text) {
			s.Line("      %s", console.Clean(strings.TrimSuffix(line, "\n")))
		}
		if f.Secret {
			s.Line("      (secret: not shown)")
		}
	}
}
