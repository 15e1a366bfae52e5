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
		Name:      "minions",
		ArgsUsage: "[MINION]",
		Usage:     "list the connections of minions on all nodes by address, or list minions, or show what is known about one",
		Description: "Salt's publish protocol does not say which minion a connection belongs to. The addresses are those of the minions if they\n" +
			"connect directly or if the load balancer sends them (proxy_protocol).\n" +
			"By id, a minion is known by its requests: with default settings it sends at least one an hour, for its mine. --present and\n" +
			"--absent combine both: they show which minions have a connection now, as far as addresses tell. With these lists, MINION may\n" +
			"be a pattern as in Salt (web*).",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "present",
				Usage: "list the accepted minions that are alive, by id, as salt-run cluster.present"},
			&cli.BoolFlag{Name: "absent", Usage: "list the accepted minions that are not alive, by id"},
			&cli.BoolFlag{Name: "connected", Usage: "list the accepted minions that had contact with a node recently, by id"},
			&cli.BoolFlag{Name: "lost", Usage: "list the accepted minions that had no contact with any node recently, by id"},
			&cli.DurationFlag{Name: "within", Value: heardWithin, Usage: "how recent the contact must be (`TIME`), for --connected and --lost"},
			&cli.BoolFlag{Name: "protocol", Usage: "list the payload versions that minions speak, by id"},
		},
		Action: func(c *cli.Context) error { return runMinions(c, e) },
	})
}

func runMinions(c *cli.Context, e *console.Env) error {
	lists := 0
	for _, name := range []string{"present", "absent", "connected", "lost", "protocol"} {
		if c.Bool(name) {
			lists++
		}
	}
	id := c.Args().First()
	switch {
	case lists > 1:
		return console.Usagef("use one of them", "--present, --absent, --connected, --lost and --protocol cannot be combined")
	case c.NArg() > 1:
		return console.Usagef("saltclusterctl minions web1", "minions takes the id of one minion")
	case c.Duration("within") <= 0:
		return console.Usagef("saltclusterctl minions --lost --within 10m", "--within is a time span")
	case lists == 0 && strings.ContainsAny(id, "*?["):
		return console.Usagef("saltclusterctl minions --connected '"+id+"'",
			"minions takes the id of one minion; the lists take patterns")
	case c.Bool("protocol"):
		return runProtocols(c, e)
	case c.Bool("present") || c.Bool("absent"):
		return runPresence(c, e, c.Bool("absent"))
	case lists > 0:
		return runHeard(c, e, c.Bool("lost"))
	case id != "":
		return runOneMinion(c, e, id)
	}
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
