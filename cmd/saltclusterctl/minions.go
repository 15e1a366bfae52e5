package main

import (
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

// heardWithin is more than the time after which a minion tells its mine again (mine_interval, an hour).
const heardWithin = 65 * time.Minute

func newMinionsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "minions",
		Usage: "list minions, show one, or list their connections",
		Subcommands: []*cli.Command{newMinionsListCommand(e), newMinionsShowCommand(e), newMinionsConnectionsCommand(e),
			newMinionsProtocolsCommand(e)},
		// The command line of earlier builds: connections, one minion, or a list.
		Flags: console.HideFlags(&cli.BoolFlag{Name: "present"}, &cli.BoolFlag{Name: "absent"},
			&cli.BoolFlag{Name: "connected"}, &cli.BoolFlag{Name: "lost"}, &cli.BoolFlag{Name: "protocol"}, withinFlag()),
		Action: func(c *cli.Context) error { return runMinions(c, e) },
	})
}

func withinFlag() cli.Flag {
	return &cli.DurationFlag{Name: "within", Value: heardWithin,
		Usage: "how recent the contact must be (`TIME`), for the states connected and lost"}
}

func newMinionsListCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "list", ArgsUsage: "[MINION]",
		Usage: "list the accepted minions in a state, by id",
		Description: "present: has a connection now, as far as addresses tell (as salt-run cluster.present); absent: has none. connected: a node had\n" +
			"contact with it recently; lost: none had. With default settings, a minion sends at least one request an hour, for its mine.\n" +
			"MINION may be a pattern as in Salt (web*).",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "state", Value: "present", Usage: "`STATE`: present, absent, connected, lost"},
			withinFlag(),
		},
		Action: func(c *cli.Context) error { return listMinions(c, e, c.String("state")) },
	})
}

func newMinionsShowCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "show", ArgsUsage: "MINION", Usage: "show what is known about one minion",
		Action: console.WithOneArg(e, "saltclusterctl minions show web1", "minions show takes the id of one minion",
			func(c *cli.Context, e *console.Env) error { return showMinion(c, e, c.Args().First()) }),
	})
}

func newMinionsConnectionsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "connections",
		Usage: "list the connections of minions on all nodes, by address",
		Description: "Salt's publish protocol does not say which minion a connection belongs to. The addresses are those of the minions if they\n" +
			"connect directly or if the load balancer sends them (proxy_protocol).",
		Action: console.WithoutArgs(e, listConnections),
	})
}

func newMinionsProtocolsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "protocols", ArgsUsage: "[MINION]",
		Usage: "list the payload versions that minions speak, by id; MINION may be a pattern as in Salt (web*)",
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return console.Usagef("saltclusterctl minions protocols 'web*'", "minions protocols takes one id or pattern")
			}
			return runProtocols(c, e)
		},
	})
}

// runMinions is minions without a subcommand.
func runMinions(c *cli.Context, e *console.Env) error {
	states := []string{}
	for _, name := range []string{"present", "absent", "connected", "lost", "protocol"} {
		if c.Bool(name) {
			states = append(states, name)
		}
	}
	switch id := c.Args().First(); {
	case len(states) > 1:
		return console.Usagef("use one of them", "--present, --absent, --connected, --lost and --protocol cannot be combined")
	case c.NArg() > 1:
		return console.Usagef("saltclusterctl minions show web1", "minions takes the id of one minion")
	case c.Bool("protocol"):
		return runProtocols(c, e)
	case len(states) > 0:
		return listMinions(c, e, states[0])
	case id != "":
		return showMinion(c, e, id)
	}
	return listConnections(c, e)
}

func listMinions(c *cli.Context, e *console.Env, state string) error {
	switch {
	case c.NArg() > 1:
		return console.Usagef("saltclusterctl minions list 'web*'", "minions list takes one id or pattern")
	case c.Duration("within") <= 0:
		return console.Usagef("--within 10m", "invalid --within: it must be longer than 0")
	case state == "present" || state == "absent":
		return runPresence(c, e, state == "absent")
	case state == "connected" || state == "lost":
		return runHeard(c, e, state == "lost")
	}
	return console.Usagef("--state present", "invalid --state %q: use present, absent, connected or lost", state)
}

func showMinion(c *cli.Context, e *console.Env, id string) error {
	if strings.ContainsAny(id, "*?[") {
		return console.Usagef("saltclusterctl minions list '"+id+"'", "this takes the id of one minion; minions list takes patterns")
	}
	return runOneMinion(c, e, id)
}

func listConnections(c *cli.Context, e *console.Env) error {
	return console.ShowAnswer(c, e, (*adminapi.Client).Minions,
		func(s *console.Screen, m adminapi.Minions) { minionsScreen(s, m, time.Now()) })
}

func minionsScreen(s *console.Screen, m adminapi.Minions, now time.Time) {
	s.PrintTable("", []string{"NODE", "ADDRESS", "CONNECTED", "SILENT"}, connectionRows(m.Subscribers, now))
	s.Line("%s", wording.Plural(len(m.Subscribers), "subscriber"))
	s.PrintMissing(m.Missing)
}

func connectionRows(subs []adminapi.Subscriber, now time.Time) [][]console.Cell {
	rows := make([][]console.Cell, 0, len(subs))
	for _, sub := range subs {
		since := console.Txt("")
		if !sub.Since.IsZero() {
			since = console.Txt(console.FormatAge(now.Sub(sub.Since)))
		}
		since.Right = true
		rows = append(rows, []console.Cell{console.Txt(sub.Node), console.Txt(sub.Remote), since,
			{Text: console.FormatAge(time.Duration(sub.Silent) * time.Second), Right: true}})
	}
	return rows
}
