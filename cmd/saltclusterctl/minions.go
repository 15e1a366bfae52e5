package main

import (
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newMinionsCommand(e *env) *cli.Command {
	return verb(&cli.Command{
		Name:  "minions",
		Usage: "list the connected subscribers of all nodes by address",
		Description: "Salt's publish protocol does not tell which minion a connection belongs to; addresses are the minions' own where\n" +
			"they connect directly or the load balancer sends them (proxy_protocol).",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "protocol", Usage: "list the payload versions that minions speak instead, by id"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("protocol") {
				return runProtocols(c, e)
			}
			m, err := ask(c, e, (*adminapi.Client).Minions)
			if err != nil {
				return err
			}
			return e.show(c, m, func(s *screen) { minionsScreen(s, m) })
		},
	})
}

func minionsScreen(s *screen, m adminapi.Minions) {
	rows := make([][]cell, 0, len(m.Subscribers))
	for _, sub := range m.Subscribers {
		rows = append(rows, []cell{txt(sub.Node), txt(sub.Remote), {text: strconv.Itoa(sub.Silent) + "s", right: true}})
	}
	s.table("", []string{"NODE", "ADDRESS", "SILENT"}, rows)
	s.line("%s", plural(len(m.Subscribers), "subscriber"))
	if len(m.Missing) > 0 {
		s.line("%s", s.paint(yellow, "no answer from "+clean(strings.Join(m.Missing, ", "))))
	}
}
