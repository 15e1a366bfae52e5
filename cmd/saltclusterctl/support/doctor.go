package support

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func NewDoctorCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "doctor",
		Usage: "find problems of this host, the network between the nodes, and the path of the minions to them",
		Description: "Also works without saltclusterd, and finds more as root. It checks ports, permissions, inotify limits, DNS, clocks, versions,\n" +
			"identities and expiry. It tries 4505 and 4506 of every node with a ZeroMQ client that shares no code with saltclusterd, also\n" +
			"with full-size packets (MTU). With --message it explains a message that Salt printed. Exit code 10: a problem was found.",
		Flags: []cli.Flag{
			console.WideFlag(),
			&cli.StringFlag{Name: "haproxy", Usage: "check the HAProxy configuration in `FILE`; -: standard input"},
			&cli.StringSliceFlag{Name: "via",
				Usage: "try `HOST`, for example the load balancer, as minions would; HOST:PUBLISH_PORT:RET_PORT for other ports; may be repeated"},
			&cli.StringFlag{Name: "message", Aliases: []string{"explain"}, Usage: "explain `WORDS`, a message that Salt printed"},
			&cli.BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "also show what is in order, and what could not be checked"},
		},
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			if c.IsSet("message") {
				return runExplain(c, e)
			}
			return runDoctor(c, e)
		}),
	})
}

func runExplain(c *cli.Context, e *console.Env) error {
	list := doctor.Explain(c.String("message"))
	if len(list) == 0 {
		words := make([]string, 0, 16)
		for _, s := range doctor.Symptoms() {
			words = append(words, s.Words)
		}
		return &adminapi.Error{Code: adminapi.CodeNotFound,
			Message: fmt.Sprintf("no known message matches %q", c.String("message")),
			Hint:    "known messages: " + joinQuoted(words)}
	}
	away := daemonAway(e, c)
	return e.PrintValue(c, list, func(s *console.Screen) {
		if away {
			s.Wrapped("", "%s", s.Paint(console.Red,
				"saltclusterd on this host is not reachable: jobs published here may reach no minion"))
			s.Wrapped("     -> ", "systemctl status saltclusterd; systemctl start saltclusterd")
		}
		for _, one := range list {
			s.Wrapped("", "%s  (%s)", s.Paint(console.Bold, one.Words), one.Where)
			for _, cause := range one.Causes {
				s.Wrapped("  ", "%s", cause.Cause)
				s.Wrapped("     ?  ", "%s", cause.Look)
				s.Wrapped("     -> ", "%s", cause.Then)
			}
		}
	})
}

// daemonAway says whether saltclusterd on this host cannot be reached, though this user may reach it: the likeliest
// cause of much that Salt prints.
func daemonAway(e *console.Env, c *cli.Context) bool {
	_, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	return adminapi.IsDown(err)
}

func runDoctor(c *cli.Context, e *console.Env) error {
	p := &examination{c: c, e: e, proc: "/proc"}
	done := e.ShowWaiting("checking this host, and 4505 and 4506 of every node, for about %s",
		max(c.Duration("timeout"), console.AskTimeout))
	p.examineAll()
	done()
	report := doctor.NewReport(p.checkup.Node, p.found)
	if err := e.PrintValue(c, report, func(s *console.Screen) { doctorScreen(s, report, c.Bool("all")) }); err != nil {
		return err
	}
	switch {
	case report.Failed > 0:
		return console.SilentError(console.ExitProblems)
	case p.denied: // a script must not take what was not looked at for well
		return console.SilentError(console.ExitDenied)
	}
	return nil
}

func doctorScreen(s *console.Screen, r doctor.Report, all bool) {
	hidden := 0
	for _, f := range r.Findings {
		if !all && (f.Level == doctor.OK || f.Level == doctor.Skip) {
			hidden++
			continue
		}
		FindingLines(s, f)
	}
	verdict := fmt.Sprintf("%s, %s", wording.Plural(r.Failed, "failure"), wording.Plural(r.Warned, "warning"))
	tint := console.Green
	switch {
	case r.Failed > 0:
		tint = console.Red
	case r.Warned > 0:
		tint = console.Yellow
	}
	if hidden > 0 {
		verdict += fmt.Sprintf("; %d more with --all", hidden)
	}
	s.Line("%s", s.Paint(tint, verdict))
}

func FindingLines(s *console.Screen, f doctor.Finding) {
	tints := map[doctor.Level]string{doctor.Fail: console.Red, doctor.Warn: console.Yellow, doctor.OK: console.Green}
	where := ""
	if f.Where != "" {
		where = console.Clean(f.Where) + ": "
	}
	s.Wrapped(s.Paint(tints[f.Level], fmt.Sprintf("%-4s", f.Level))+" ", "%s  %s%s", s.Paint(console.Bold, f.Check), where,
		console.Clean(f.What))
	if f.Why != "" {
		s.Wrapped("     so   ", "%s", console.Clean(f.Why))
	}
	if f.Next != "" {
		s.Wrapped("     -> ", "%s", console.Clean(f.Next))
	}
}
