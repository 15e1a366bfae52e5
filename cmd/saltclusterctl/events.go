package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newEventsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "events", ArgsUsage: "[TAG]",
		Usage: "show which master handled the events of minions, and why",
		Description: "Without TAG: the newest events that masters received, of all minions or of --minion; --explain adds why that master received\n" +
			"them. cluster_event_policy decides this by tag. With owner, the default, it is the minion's owner by the ring, but for events\n" +
			"of jobs the node that published the job, as with origin. A node remembers its last 2,048 events since saltclusterd started.\n" +
			"With TAG and --minion: on which bus such an event would fire if that minion sent it to this node now, and why.\n" +
			"To watch events: salt-run state.event pretty=True.",
		Flags: []cli.Flag{
			console.WideFlag(),
			&cli.BoolFlag{Name: "explain", Usage: "show why that master; always shown with a TAG"},
			&cli.StringFlag{Name: "minion", Aliases: []string{"m"}, Usage: "the minion `ID` whose events to show; with TAG: the minion that sends the event"},
			&cli.IntFlag{Name: "count", Aliases: []string{"n", "limit"}, Value: 50, Usage: "show the newest `N` events"},
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() > 1, c.NArg() == 1 && c.String("minion") == "":
				return console.Usagef("saltclusterctl events --explain salt/beacon/web1/load/ --minion web1",
					"events takes one tag, and then --minion")
			case c.Int("count") < 1:
				return console.Usagef("--count 50", "invalid --count: at least 1")
			case c.NArg() == 0:
				return runHandledEvents(c, e)
			}
			return console.ShowAnswer(c, e, func(client *adminapi.Client,
				ctx context.Context) (adminapi.EventExplanation, error) {
				return client.ExplainEvent(ctx, c.String("minion"), c.Args().First())
			}, explainEvent)
		},
	})
}

func runHandledEvents(c *cli.Context, e *console.Env) error {
	return console.ShowAnswer(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.HandledEvents,
		error) {
		return client.HandledEvents(ctx, c.String("minion"), c.Int("count"))
	}, func(s *console.Screen, list adminapi.HandledEvents) { handledEvents(s, list, c.Bool("explain")) })
}

func handledEvents(s *console.Screen, list adminapi.HandledEvents, explain bool) {
	if len(list.Events) == 0 {
		s.Line("no events since the nodes were started")
	} else {
		head := []string{"TIME", "MINION", "TAG", "SENT TO", "FIRED ON", "BY"}
		stamp := "01-02 15:04:05.000"
		if s.Wide {
			stamp = "2006-01-02 15:04:05.000"
		}
		var notes []string
		rows := make([][]console.Cell, 0, len(list.Events))
		for _, x := range list.Events {
			by := "saltclusterd"
			if x.Python {
				by = "salt-master"
			}
			rows = append(rows, []console.Cell{
				console.Txt(x.Time.UTC().Format(stamp)), console.Txt(x.Minion).WithCut(), console.Txt(x.Tag).WithCut(),
				console.Txt(x.From).WithCut(), console.Txt(x.Node).WithCut(), console.Txt(by),
			})
			if explain {
				notes = append(notes, "why: "+console.Clean(whyHandled(x)))
			}
		}
		s.PrintNotedTable("", head, rows, notes)
	}
	s.PrintMissing(list.Missing)
}

// whyHandled says why an event came to the node that it came to.
func whyHandled(x adminapi.HandledEvent) string {
	why := "the ring: " + x.Node + " owns this minion"
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

func explainEvent(s *console.Screen, x adminapi.EventExplanation) {
	where := s.Paint(console.Red, "nowhere: no salt-master can take it now")
	if len(x.Nodes) > 0 {
		where = "on " + s.Paint(console.Green, console.Clean(strings.Join(x.Nodes, ", ")))
	}
	s.Wrapped("", "%s of %s, sent to %s, fires %s", s.Paint(console.Bold, console.Clean(x.Tag)), console.Clean(x.Minion), console.Clean(x.From), where)
	why := "no line of cluster_event_policy matches, so it goes to the minion's owner by the ring"
	if x.Rule != "" {
		why = "cluster_event_policy has '" + console.Clean(x.Rule) + "': " + console.Clean(x.Policy)
	}
	if x.JID != "" {
		why += "; it belongs to the job " + console.Clean(x.JID) + ", so it goes where that was published"
	}
	s.Wrapped("  why   ", "%s", why)
	if len(x.Others) > 0 {
		s.Wrapped("  else  ", "%s, in this order", console.Clean(strings.Join(x.Others, ", ")))
	}
	if len(x.Nodes) > 1 {
		s.Line("  so    a reactor for it runs on each of them")
	}
}
