package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/sidecar/adminapi"
)

func newDoctorCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "doctor",
		Usage: "look for what is wrong: this host, the way between the nodes, the way of the minions to them",
		Description: "Also works without saltclusterd, and sees more as root. Ports, permissions, inotify limits, DNS, clocks, versions, identities,\n" +
			"expiry; every node's 4505 and 4506 are tried with a ZeroMQ client that shares no code with saltclusterd, also with packets of\n" +
			"full size (MTU). With --explain it says what is behind something that Salt has printed. Exit code 10: something is broken.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "haproxy", Usage: "judge the HAProxy configuration in `FILE`; -: standard input"},
			&cli.StringSliceFlag{Name: "via",
				Usage: "try `HOST`, the load balancer for one, as minions would; HOST:PUBLISH_PORT:RET_PORT for other ports; may be repeated"},
			&cli.StringFlag{Name: "explain", Usage: "say what is behind `WORDS` that Salt has printed"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also what is well, and what could not be looked at"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.IsSet("explain") {
				return runExplain(c, e)
			}
			return runDoctor(c, e)
		},
	})
}

func runExplain(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	list := doctor.Explain(c.String("explain"))
	if len(list) == 0 {
		words := make([]string, 0, 16)
		for _, s := range doctor.Symptoms() {
			words = append(words, s.Words)
		}
		return &adminapi.Error{Code: adminapi.CodeNotFound,
			Message: fmt.Sprintf("nothing is known about %q", c.String("explain")),
			Hint:    "known are: " + joinQuoted(words)}
	}
	away := e.daemonAway(c)
	return e.printValue(c, list, func(s *screen) {
		if away {
			s.line("%s", s.paint(red,
				"saltclusterd on this host is not reachable: what salt publishes here may reach no minion"))
			s.line("     -> systemctl status saltclusterd; systemctl start saltclusterd")
		}
		for _, one := range list {
			s.line("%s  (%s)", s.paint(bold, one.Words), one.Where)
			for _, cause := range one.Causes {
				s.line("  %s", cause.Cause)
				s.line("     ?  %s", cause.Look)
				s.line("     -> %s", cause.Then)
			}
		}
	})
}

// daemonAway says whether saltclusterd on this host cannot be reached, though this user may reach it: the likeliest
// cause of much that Salt prints.
func (e *env) daemonAway(c *cli.Context) bool {
	_, err := askAdmin(c, e, (*adminapi.Client).Status)
	_, away := errors.AsType[*adminapi.UnreachableError](err)
	return away && !errors.Is(err, fs.ErrPermission)
}

func runDoctor(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	p := &examination{c: c, e: e, proc: "/proc"}
	done := e.showWaiting("looking at this host and trying every node's 4505 and 4506, for %s or so",
		max(c.Duration("timeout"), askTimeout))
	p.examineAll()
	done()
	report := doctor.NewReport(p.checkup.Node, p.found)
	if err := e.printValue(c, report, func(s *screen) { doctorScreen(s, report, c.Bool("all")) }); err != nil {
		return err
	}
	if report.Failed > 0 {
		return &silentError{exitProblems}
	}
	return nil
}

func doctorScreen(s *screen, r doctor.Report, all bool) {
	hidden := 0
	for _, f := range r.Findings {
		if !all && (f.Level == doctor.OK || f.Level == doctor.Skip) {
			hidden++
			continue
		}
		findingLines(s, f)
	}
	verdict := fmt.Sprintf("%s, %s", plural(r.Failed, "failure"), plural(r.Warned, "warning"))
	tint := green
	switch {
	case r.Failed > 0:
		tint = red
	case r.Warned > 0:
		tint = yellow
	}
	if hidden > 0 {
		verdict += fmt.Sprintf("; %s more with --all", plural(hidden, "look"))
	}
	s.line("%s", s.paint(tint, verdict))
}

func findingLines(s *screen, f doctor.Finding) {
	tints := map[doctor.Level]string{doctor.Fail: red, doctor.Warn: yellow, doctor.OK: green}
	where := ""
	if f.Where != "" {
		where = clean(f.Where) + ": "
	}
	s.line("%s %s  %s%s", s.paint(tints[f.Level], fmt.Sprintf("%-4s", f.Level)), s.paint(bold, f.Check), where,
		clean(f.What))
	if f.Why != "" {
		s.line("     so   %s", clean(f.Why))
	}
	if f.Next != "" {
		s.line("     -> %s", clean(f.Next))
	}
}
