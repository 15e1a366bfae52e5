package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newRingInfoCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:    "ring_info",
		Aliases: []string{"ring-info"},
		Usage:   "show how minions and jobs are divided among the nodes",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "minion", Usage: "show which node owns this minion `ID`"},
			&cli.StringFlag{Name: "jid", Usage: "show which node owns this job (`JID`)"},
		},
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			if c.String("minion") != "" && c.String("jid") != "" {
				return console.Usagef("use --minion or --jid", "--minion and --jid cannot be combined")
			}
			return runRingInfo(c, e)
		}),
	})
}

func runRingInfo(c *cli.Context, e *console.Env) error {
	q := adminapi.RingQuery{Minion: c.String("minion"), JID: c.String("jid")}
	return console.ShowAnswer(c, e, console.With((*adminapi.Client).RingInfo, q), ringTable)
}

func ringTable(s *console.Screen, info adminapi.RingInfo) {
	rows := make([][]console.Cell, 0, len(info.Nodes))
	for _, n := range info.Nodes {
		note := ""
		if n.Draining {
			note = "draining"
		}
		weight := console.Cell{Text: strconv.FormatFloat(n.Weight, 'g', 4, 64), Right: true}
		if n.Share == 0 { // it is not on the ring
			weight.Text = "-"
		}
		rows = append(rows, []console.Cell{
			console.Txt(n.ID), console.Txt(string(n.State)).WithTint(console.StateTint(n.State)), weight,
			{Text: fmt.Sprintf("%.1f%%", 100*n.Share), Right: true},
			{Text: note},
		})
	}
	s.PrintTable("", []string{"NODE", "STATE", "WEIGHT", "SHARE", ""}, rows)
	if info.Owner != nil {
		s.Line("\n%s", ownerLine(*info.Owner))
	}
}

func ownerLine(o adminapi.RingOwner) string {
	what := console.Clean(o.Kind + " " + o.Key)
	switch {
	case o.Node == "":
		return what + " has no owner: no node can take it"
	case o.By == adminapi.OwnerByPublisher:
		what += " was published by " + console.Clean(o.Node)
	default:
		what += " belongs to " + console.Clean(o.Node)
	}
	if len(o.Next) > 0 {
		what += "; without it: " + console.Clean(strings.Join(o.Next, ", then "))
	}
	return what
}
