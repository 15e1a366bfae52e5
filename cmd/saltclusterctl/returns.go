package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newReturnsCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "returns",
		Usage: "look at the returns that the salt-master of this host does not answer",
		Description: "Returns that only the salt-master itself can take are kept for it while it is away. One that it does not answer, though it\n" +
			"answers others, is put aside and given to it again up to three times, for each may fire its events again; then only by\n" +
			"retry. Nothing that was acknowledged is lost. Each is a file below state_dir/returns/unanswered.",
		Subcommands: []*cli.Command{newReturnsListCommand(e), newReturnsRetryCommand(e), newReturnsDropCommand(e)},
		Action: func(c *cli.Context) error {
			return noSuchWord(c, "saltclusterctl returns --help", "list, retry or drop")
		},
	})
}

func newReturnsListCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "list",
		Usage: "list the returns that were put aside on this node, what waits longest first",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			list, err := askAdmin(c, e, (*adminapi.Client).UnansweredReturns)
			if err != nil {
				return err
			}
			return e.printValue(c, list, func(s *screen) { unansweredScreen(s, list, time.Now()) })
		},
	})
}

func unansweredScreen(s *screen, list adminapi.UnansweredReturns, now time.Time) {
	rows := make([][]cell, 0, len(list.Returns))
	for _, r := range list.Returns {
		next := "by hand"
		if !r.Next.IsZero() {
			next = "in " + formatAge(r.Next.Sub(now))
		}
		rows = append(rows, []cell{
			txt(r.ID), txt(r.Minion), txt(r.JID), txt(r.Function), txt(formatAge(now.Sub(r.Since))),
			{text: fmt.Sprint(r.Tries), right: true},
			txt(next), txt(r.Error),
		})
	}
	if len(rows) > 0 {
		s.printTable("", []string{"ID", "MINION", "JID", "FUNCTION", "ASIDE FOR", "TRIES", "AGAIN", "LAST ERROR"}, rows)
	}
	if list.More > 0 {
		s.line("and %d more", list.More)
	}
	s.line("%s put aside on %s", plural(len(list.Returns)+list.More, "return"), clean(list.From))
	if list.Full {
		s.line("%s", s.paint(red, "there is no room for more: the next one holds up those after it"))
	}
	if len(rows) > 0 {
		s.line("-> the salt-master's log may say what is wrong with them; saltclusterctl returns retry; saltclusterctl returns drop ID")
	}
}

func newReturnsRetryCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "retry",
		Usage: "give the salt-master all of them once more now, one after the other",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			done, err := askAdmin(c, e, (*adminapi.Client).RetryReturns)
			if err != nil {
				return err
			}
			return e.printValue(c, done, func(s *screen) { retriedScreen(s, done) })
		},
	})
}

func retriedScreen(s *screen, r adminapi.RetriedReturns) {
	s.line("%s: %s due", clean(r.From), plural(r.Returns, "return"))
	switch {
	case r.Returns == 0:
	case !r.MasterDown:
		s.line("the salt-master gets them one after the other, with a pause after one that it does not answer")
	default:
		s.line("%s", s.paint(yellow, "the salt-master is down: it gets them when it is up"))
	}
	if r.Damaged > 0 {
		s.line("%s", s.paint(yellow, plural(r.Damaged, "damaged file")+" cannot be given: saltclusterctl returns list"))
	}
}

func newReturnsDropCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "drop", ArgsUsage: "ID",
		Usage: "give one up for good: it will be in no job cache",
		Flags: []cli.Flag{dryRunFlag(), yesFlag()},
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl returns list", "returns drop takes one argument, the id of a return")
			}
			if c.Bool("dry-run") {
				return forecastDrop(c, e)
			}
			if err := e.askConsent(c, fmt.Sprintf("give the return %s up for good?", clean(c.Args().First()))); err != nil {
				return err
			}
			r, err := askAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.UnansweredReturn, error) {
				return client.DropReturn(ctx, c.Args().First())
			})
			if err != nil {
				return err
			}
			return e.printValue(c, r, func(s *screen) {
				s.line("dropped: the return of %s for %s", clean(cmp.Or(r.Minion, "an unknown minion")),
					clean(cmp.Or(r.JID, "no job")))
			})
		},
	})
}

func forecastDrop(c *cli.Context, e *env) error {
	list, err := askAdmin(c, e, (*adminapi.Client).UnansweredReturns)
	if err != nil {
		return err
	}
	id := c.Args().First()
	at := slices.IndexFunc(list.Returns, func(r adminapi.UnansweredReturn) bool { return r.ID == id })
	switch {
	case at < 0 && list.More > 0:
		return adminapi.Errorf(adminapi.CodeNotFound, "drop some that are listed first",
			"%q is not among those that are listed; %d more are there", id, list.More)
	case at < 0:
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl returns list", "there is no return %q", id)
	}
	r := list.Returns[at]
	return e.showPlan(c, forecast{Node: list.From,
		Effects: []string{fmt.Sprintf("the return of %s for %s would be given up: no job cache would ever have it",
			cmp.Or(r.Minion, "an unknown minion"), cmp.Or(r.JID, "no job"))}})
}
