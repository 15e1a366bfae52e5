package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newEventsCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "events", ArgsUsage: "[TAG]",
		Usage: "say which master handled the events of minions, and why",
		Description: "Without TAG: the newest events that masters got, of all minions or of --minion, with --explain also why there: cluster_event_policy\n" +
			"decides by tag. Under owner, the default, that is the ring's owner of the minion, but of events of jobs the node that published the job,\n" +
			"as under origin. A node remembers its last 2,048 since saltclusterd was started.\n" +
			"With TAG and --minion: on whose bus such an event would fire if that minion sent it to this node now, and why.\n" +
			"To watch events: salt-run state.event pretty=True.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "explain", Usage: "say why there; of a TAG it is said in any case"},
			&cli.StringFlag{Name: "minion", Aliases: []string{"m"}, Usage: "the minion `ID` that sends, or has sent, it"},
			&cli.IntFlag{Name: "limit", Value: 50, Usage: "show the newest `N`"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() > 1, c.NArg() == 1 && c.String("minion") == "":
				return usagef("saltclusterctl events --explain salt/beacon/web1/load/ --minion web1",
					"events takes one tag, and then --minion")
			case c.Int("limit") < 1:
				return usagef("--limit 50", "the number of events is 1 at least")
			case c.NArg() == 0:
				return runHandledEvents(c, e)
			}
			x, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.EventExplanation, error) {
				return client.ExplainEvent(ctx, c.String("minion"), c.Args().First())
			})
			if err != nil {
				return err
			}
			return e.printValue(c, x, func(s *screen) { explainEvent(s, x) })
		},
	})
}

func runHandledEvents(c *cli.Context, e *env) error {
	list, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.HandledEvents, error) {
		return client.HandledEvents(ctx, c.String("minion"), c.Int("limit"))
	})
	if err != nil {
		return err
	}
	return e.printValue(c, list, func(s *screen) { handledEvents(s, list, c.Bool("explain")) })
}

func handledEvents(s *screen, list adminapi.HandledEvents, explain bool) {
	if len(list.Events) == 0 {
		s.line("no events since the nodes were started")
	} else {
		head := []string{"TIME", "MINION", "TAG", "SENT TO", "FIRED ON", "BY"}
		if explain {
			head = append(head, "WHY")
		}
		rows := make([][]cell, 0, len(list.Events))
		for _, x := range list.Events {
			by := "saltclusterd"
			if x.Python {
				by = "the salt-master itself"
			}
			row := []cell{txt(x.Time.UTC().Format("2006-01-02 15:04:05.000")), txt(x.Minion), txt(x.Tag), txt(x.From),
				txt(x.Node), txt(by)}
			if explain {
				row = append(row, txt(whyHandled(x)))
			}
			rows = append(rows, row)
		}
		s.printTable("", head, rows)
	}
	if len(list.Missing) > 0 {
		s.line("%s", s.paint(yellow, clean("no answer from "+strings.Join(list.Missing, ", "))))
	}
}

// whyHandled says why an event came to the node that it came to.
func whyHandled(x adminapi.HandledEvent) string {
	why := "the ring: this minion's events are " + x.Node + "'s"
	switch {
	case x.Elsewhere:
		why = "such an event would now fire elsewhere: the ring has changed since, or the right node could not be reached"
	case x.JID != "":
		why = "it published the job " + x.JID
	case x.Rule != "":
		why = "cluster_event_policy has '" + x.Rule + "': " + x.Policy
	}
	return why
}

func explainEvent(s *screen, x adminapi.EventExplanation) {
	where := s.paint(red, "nowhere: no salt-master can take it now")
	if len(x.Nodes) > 0 {
		where = "on " + s.paint(green, clean(strings.Join(x.Nodes, ", ")))
	}
	s.line("%s of %s, sent to %s, fires %s", s.paint(bold, clean(x.Tag)), clean(x.Minion), clean(x.From), where)
	why := "no line of cluster_event_policy matches, so the ring's owner of the minion gets it"
	if x.Rule != "" {
		why = "cluster_event_policy has '" + clean(x.Rule) + "': " + clean(x.Policy)
	}
	if x.JID != "" {
		why += "; it belongs to the job " + clean(x.JID) + ", so it goes where that was published"
	}
	s.line("  why   %s", why)
	if len(x.Others) > 0 {
		s.line("  else  %s, in this order", clean(strings.Join(x.Others, ", ")))
	}
	if len(x.Nodes) > 1 {
		s.line("  so    a reactor for it runs on each of them")
	}
}
