package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newRingInfoCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:    "ring_info",
		Aliases: []string{"ring-info"},
		Usage:   "show which node is responsible for how much, and for whom",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "minion", Usage: "say who owns this minion `ID`"},
			&cli.StringFlag{Name: "jid", Usage: "say who owns this job (`JID`)"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.String("minion") != "" && c.String("jid") != "" {
				return usagef("use --minion or --jid", "--minion and --jid cannot be combined")
			}
			return runRingInfo(c, e)
		},
	})
}

func runRingInfo(c *cli.Context, e *env) error {
	q := adminapi.RingQuery{Minion: c.String("minion"), JID: c.String("jid")}
	info, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.RingInfo, error) {
		return client.RingInfo(ctx, q)
	})
	if err != nil {
		return err
	}
	return e.printValue(c, info, func(s *screen) { ringTable(s, info) })
}

func ringTable(s *screen, info adminapi.RingInfo) {
	rows := make([][]cell, 0, len(info.Nodes))
	for _, n := range info.Nodes {
		note := ""
		if n.Draining {
			note = "draining"
		}
		rows = append(rows, []cell{
			txt(n.ID), txt(string(n.State)).withTint(stateTint(n.State)),
			{text: strconv.FormatFloat(n.Weight, 'g', 4, 64), right: true},
			{text: fmt.Sprintf("%.1f%%", 100*n.Share), right: true},
			{text: note},
		})
	}
	s.printTable("", []string{"NODE", "STATE", "WEIGHT", "SHARE", ""}, rows)
	if info.Owner != nil {
		s.line("\n%s", ownerLine(*info.Owner))
	}
}

func ownerLine(o adminapi.RingOwner) string {
	what := clean(o.Kind + " " + o.Key)
	switch {
	case o.Node == "":
		return what + " has no owner: no node can take it"
	case o.By == adminapi.OwnerByPublisher:
		what += " was published by " + clean(o.Node)
	default:
		what += " belongs to " + clean(o.Node)
	}
	if len(o.Next) > 0 {
		what += "; without it: " + clean(strings.Join(o.Next, ", then "))
	}
	return what
}
