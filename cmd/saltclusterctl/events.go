package main

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newEventsCommand(e *env) *cli.Command {
	return verb(&cli.Command{
		Name: "events", ArgsUsage: "TAG",
		Usage: "say on which master's bus an event of a minion fires, and why",
		Description: "With --explain and --minion: as if that minion sent an event with TAG to this node now. What decides is cluster_event_policy,\n" +
			"for events of jobs their publisher, for the others the ring. To watch events: salt-run state.event pretty=True.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "explain", Value: true, Usage: "say who handles it and why"},
			&cli.StringFlag{Name: "minion", Aliases: []string{"m"}, Usage: "the minion `ID` that sends it"},
		},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 || c.String("minion") == "" {
				return usagef("saltclusterctl events --explain salt/beacon/web1/load/ --minion web1", "events takes a tag, and --minion")
			}
			x, err := ask(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.EventExplanation, error) {
				return client.ExplainEvent(ctx, c.String("minion"), c.Args().First())
			})
			if err != nil {
				return err
			}
			return e.show(c, x, func(s *screen) { explainEvent(s, x) })
		},
	})
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
