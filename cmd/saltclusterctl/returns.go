package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newReturnsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "returns",
		Usage: "show the returns that the salt-master of this host does not answer",
		Description: "Returns that only the salt-master can process are kept for it while it is down. A return that it does not answer, although\n" +
			"it answers others, is put aside and given to it again at most three times, because each time may fire its events again;\n" +
			"after that only retry does. No acknowledged return is lost. Each is a file below state_dir/returns/unanswered.",
		Subcommands: []*cli.Command{newReturnsListCommand(e), newReturnsRetryCommand(e), newReturnsDropCommand(e)},
		Action:      console.NoSuchWord("saltclusterctl returns --help", "list, retry or drop"),
	})
}

func newReturnsListCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "list",
		Usage: "list the returns that were put aside on this node, the oldest first",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).UnansweredReturns,
				func(s *console.Screen, list adminapi.UnansweredReturns) { unansweredScreen(s, list, time.Now()) })
		}),
	})
}

func unansweredScreen(s *console.Screen, list adminapi.UnansweredReturns, now time.Time) {
	rows := make([][]console.Cell, 0, len(list.Returns))
	for _, r := range list.Returns {
		next := "by hand"
		if !r.Next.IsZero() {
			next = "in " + console.FormatAge(r.Next.Sub(now))
		}
		rows = append(rows, []console.Cell{
			console.Txt(r.ID), console.Txt(r.Minion), console.Txt(r.JID), console.Txt(r.Function),
			console.Txt(console.FormatAge(now.Sub(r.Since))),
			{Text: fmt.Sprint(r.Tries), Right: true},
			console.Txt(next), console.Txt(r.Error),
		})
	}
	if len(rows) > 0 {
		s.PrintTable("", []string{"ID", "MINION", "JID", "FUNCTION", "ASIDE FOR", "TRIES", "AGAIN", "LAST ERROR"}, rows)
	}
	if list.More > 0 {
		s.Line("and %d more", list.More)
	}
	s.Line("%s put aside on %s", wording.Plural(len(list.Returns)+list.More, "return"), console.Clean(list.From))
	if list.Full {
		s.Line("%s", s.Paint(console.Red, "no more can be put aside: the next one will block those after it"))
	}
	if len(rows) > 0 {
		s.Line("-> look for the cause in the salt-master's log; then saltclusterctl returns retry, or saltclusterctl returns drop ID")
	}
}

func newReturnsRetryCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "retry",
		Usage: "give all of them to the salt-master once more, one after the other",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).RetryReturns, retriedScreen)
		}),
	})
}

func retriedScreen(s *console.Screen, r adminapi.RetriedReturns) {
	s.Line("%s: %s due", console.Clean(r.From), wording.Plural(r.Returns, "return"))
	switch {
	case r.Returns == 0:
	case !r.MasterDown:
		s.Line("the salt-master gets them one after the other, with a pause after one that it does not answer")
	default:
		s.Line("%s", s.Paint(console.Yellow, "the salt-master is down: it gets them when it is up"))
	}
	if r.Damaged > 0 {
		s.Line("%s", s.Paint(console.Yellow, wording.Plural(r.Damaged, "damaged file")+" cannot be delivered: saltclusterctl returns list"))
	}
}

func newReturnsDropCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "drop", ArgsUsage: "ID",
		Usage: "delete one for good: no job cache will contain it",
		Flags: []cli.Flag{dryrun.DryRunFlag(), console.YesFlag()},
		Action: console.WithOneArg(e, "saltclusterctl returns list",
			"returns drop takes one argument, the id of a return", func(c *cli.Context, e *console.Env) error {
				if c.Bool("dry-run") {
					return forecastDrop(c, e)
				}
				if err := e.AskConsent(c, fmt.Sprintf("delete the return %s for good?", console.Clean(c.Args().First()))); err != nil {
					return err
				}
				return console.ShowAnswer(c, e, console.With((*adminapi.Client).DropReturn, c.Args().First()),
					func(s *console.Screen, r adminapi.UnansweredReturn) {
						s.Line("dropped: the return of %s for %s", console.Clean(cmp.Or(r.Minion, "an unknown minion")),
							console.Clean(cmp.Or(r.JID, "no job")))
					})
			}),
	})
}

func forecastDrop(c *cli.Context, e *console.Env) error {
	list, err := console.AskAdmin(c, e, (*adminapi.Client).UnansweredReturns)
	if err != nil {
		return err
	}
	id := c.Args().First()
	at := slices.IndexFunc(list.Returns, func(r adminapi.UnansweredReturn) bool { return r.ID == id })
	switch {
	case at < 0 && list.More > 0:
		return adminapi.Errorf(adminapi.CodeNotFound, "drop some of the listed ones first",
			"%q is not listed; there are %d more", id, list.More)
	case at < 0:
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl returns list", "there is no return %q", id)
	}
	r := list.Returns[at]
	return dryrun.ShowPlan(e, c, dryrun.Forecast{Node: list.From,
		Effects: []string{fmt.Sprintf("the return of %s for %s would be deleted: no job cache would contain it",
			cmp.Or(r.Minion, "an unknown minion"), cmp.Or(r.JID, "no job"))}})
}
