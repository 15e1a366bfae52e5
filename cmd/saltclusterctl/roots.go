package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newRootsCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "roots",
		Usage: "look at the replication of file_roots and pillar_roots, and decide where it needs an operator",
		Subcommands: []*cli.Command{
			newRootsStatusCommand(e), newRootsDiffCommand(e), newRootsHistoryCommand(e), newRootsConflictsCommand(e),
			newRootsDecision(e, adminapi.RootsConfirm,
				"put a revision in force that deletes much and was held; on a terminal it asks before"),
			newRootsDecision(e, adminapi.RootsDrop,
				"refuse a revision that was held: its author gets back what it deleted; what it edited is put aside"),
			newRootsDecision(e, adminapi.RootsRollback,
				"make the trees as they were in a former revision, on all nodes; on a terminal it asks before"),
			newRootsAside(e, "restore", "put back something that was put aside on this node (roots conflicts), as an edit",
				true),
			newRootsAside(e, "discard",
				"remove for good something that was put aside on this node (roots conflicts); on a terminal it asks before", false),
			newRootsRefillCommand(e),
		},
		Action: func(c *cli.Context) error {
			return noSuchWord(c, "saltclusterctl roots --help",
				"status, diff, history, conflicts, confirm, drop, rollback, restore, discard or refill")
		},
	})
}

func newRootsStatusCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "status", Usage: "show what is in force, and how far every node is",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			st, err := askAdmin(c, e, (*adminapi.Client).RootsStatus)
			if err != nil {
				return err
			}
			return e.printValue(c, st, func(s *screen) { rootsStatusScreen(s, st, time.Now()) })
		},
	})
}

func newRootsHistoryCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "history", Usage: "list the revisions that are kept, with those that wait for a decision",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			h, err := askAdmin(c, e, (*adminapi.Client).RootsHistory)
			if err != nil {
				return err
			}
			return e.printValue(c, h, func(s *screen) { rootsHistoryScreen(s, h) })
		},
	})
}

func newRootsConflictsCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "conflicts", Usage: "list what lost against the cluster and was put aside, on all nodes",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			list, err := askAdmin(c, e, (*adminapi.Client).RootsConflicts)
			if err != nil {
				return err
			}
			return e.printValue(c, list, func(s *screen) { rootsConflictsScreen(s, list) })
		},
	})
}

func newRootsDiffCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "diff", ArgsUsage: "NODE NODE",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "timeout", Value: 100 * time.Second,
			Usage: "give up after `TIME`; 0: never"}},
		Usage: "compare the disks of two nodes: how to get from the first to the second",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return usagef("saltclusterctl roots diff m1 m2", "roots diff takes two arguments, the ids of nodes")
			}
			if err := checkOperation(c); err != nil {
				return err
			}
			client := e.openClient(c)
			defer client.Close()
			ctx, cancel := withTimeout(c)
			defer cancel()
			done := e.showWaiting("both nodes look at their disks")
			d, err := client.RootsDiff(ctx, c.Args().Get(0), c.Args().Get(1))
			done()
			if adminapi.CodeOf(err) == adminapi.CodeUnreachable { // which says nothing of the roots
				e.printError(err)
				return &silentError{exitIncomplete}
			}
			if err != nil {
				return err
			}
			return e.printValue(c, d, func(s *screen) {
				switch {
				case len(d.Changes) > 0:
				case len(d.LeftOut) > 0:
					s.line("%s", clean(d.From+" and "+d.To+" have the same of what is compared"))
				default:
					s.line("%s", s.paint(green, clean(d.From+" and "+d.To+" have the same")))
				}
				for _, l := range d.LeftOut {
					s.line("%s", s.paint(yellow, clean(l)))
				}
				rootsChangesTable(s, d.Changes, 0, len(d.Changes))
			})
		},
	})
}

// rootsQuestions are asked before decisions that delete or overwrite files on all nodes.
var rootsQuestions = map[string]string{
	adminapi.RootsConfirm:  "put revision %d in force, and delete on all nodes what it deletes?",
	adminapi.RootsRollback: "make the trees of all nodes as they were in revision %d?",
}

// newRootsDecision makes the verbs that decide about a revision.
func newRootsDecision(e *env, decision, usage string) *cli.Command {
	flags := rootsWaitFlags()
	question, asks := rootsQuestions[decision]
	if asks {
		flags = append(flags, dryRunFlag(), yesFlag())
	}
	return completeCommand(&cli.Command{
		Name: decision, Usage: usage, ArgsUsage: "REVISION", Flags: flags,
		Action: func(c *cli.Context) error {
			n, err := strconv.ParseUint(c.Args().First(), 10, 64)
			if c.NArg() != 1 || err != nil || n == 0 {
				return usagef("saltclusterctl roots history lists them", "roots %s takes one argument, the number of a revision",
					decision)
			}
			if c.Bool("dry-run") {
				return forecastDecision(c, e, decision, n)
			}
			if asks {
				if err := e.askConsent(c, fmt.Sprintf(question, n)); err != nil {
					return err
				}
			}
			r := adminapi.DecideRootsRequest{Decision: decision, Revision: n, Wait: c.Bool("wait"),
				Timeout: c.Duration("timeout")}
			return operateRoots(c, e, func(ctx context.Context, client *adminapi.Client,
				p func(adminapi.Progress)) (adminapi.Outcome, error) {
				return client.DecideRoots(ctx, r, p)
			})
		},
	})
}

// newRootsAside makes the verbs that decide about what was put aside.
func newRootsAside(e *env, name, usage string, restore bool) *cli.Command {
	flags := []cli.Flag{timeoutFlag()}
	if !restore {
		flags = append(flags, dryRunFlag(), yesFlag(), &cli.StringFlag{
			Name: "path", Usage: "instead of an ID: all that this node has put aside whose path, or last name of it, is like `PATTERN`, such as '*.log'",
		})
	}
	return completeCommand(&cli.Command{
		Name: name, Usage: usage, ArgsUsage: "ID", Flags: flags,
		Action: func(c *cli.Context) error {
			if c.IsSet("path") {
				return discardLike(c, e, c.String("path"))
			}
			if c.NArg() != 1 {
				return usagef("saltclusterctl roots conflicts lists them", "roots %s takes one argument, the id of a conflict",
					name)
			}
			if c.Bool("dry-run") {
				return forecastDiscard(c, e)
			}
			if !restore {
				if err := e.askConsent(c, fmt.Sprintf("remove %s for good?", clean(c.Args().First()))); err != nil {
					return err
				}
			}
			r := adminapi.AsideRootsRequest{ID: c.Args().First(), Restore: restore}
			return operateRoots(c, e, func(ctx context.Context, client *adminapi.Client,
				p func(adminapi.Progress)) (adminapi.Outcome, error) {
				return client.AsideRoots(ctx, r, p)
			})
		},
	})
}

func newRootsRefillCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "refill", ArgsUsage: "DIRECTORY", Flags: []cli.Flag{dryRunFlag(), yesFlag(), timeoutFlag()},
		Usage: "bring what the cluster has into a directory of this node that is left alone because another is in its place: a new disk, say",
		Description: "Not for a file system that is only not mounted: mount it, and nothing else is needed. Content of the directory that\n" +
			"differs from what the cluster has is put aside (roots conflicts). No other node is touched.",
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("saltclusterctl roots status lists them",
					"roots refill takes one argument, a directory of file_roots or pillar_roots")
			}
			dir := c.Args().First()
			if !filepath.IsAbs(dir) {
				return usagef("saltclusterctl roots status lists them",
					"roots refill takes the directory as it is configured, from / on")
			}
			if err := checkOperation(c); err != nil {
				return err
			}
			if c.Bool("dry-run") {
				return forecastRefill(c, e, dir)
			}
			question := fmt.Sprintf("make %s, as it is mounted now, the directory of this node's roots, and fill it with what the cluster has?", clean(dir))
			if err := e.askConsent(c, question); err != nil {
				return err
			}
			r := adminapi.RefillRootsRequest{Dir: dir, Timeout: c.Duration("timeout")}
			return operateRoots(c, e, func(ctx context.Context, client *adminapi.Client,
				p func(adminapi.Progress)) (adminapi.Outcome, error) {
				return client.RefillRoots(ctx, r, p)
			})
		},
	})
}

func rootsStatusScreen(s *screen, st adminapi.RootsStatus, now time.Time) {
	if st.Head == nil {
		text := "no revision yet"
		if !slices.ContainsFunc(st.Nodes, func(n adminapi.RootsNode) bool {
			return n.Error != "" || n.Off != "" || slices.ContainsFunc(n.Slots,
				func(slot adminapi.RootsSlot) bool { return slot.Files > 0 })
		}) {
			text = "no revision yet: the roots of all nodes are empty, and the first file in them makes one"
		}
		s.line("%s  %s", s.paint(bold, "roots"), text)
	} else {
		h := st.Head
		s.line("%s  revision %d by %s, %s ago: %s, %s", s.paint(bold, "roots"), h.Number, clean(h.Author),
			formatAge(now.Sub(h.Time)),
			plural(h.Files, "file"), bytesText(h.Bytes))
	}
	s.line("")
	rows := make([][]cell, 0, len(st.Nodes))
	for _, n := range st.Nodes {
		text, tint := rootsNodeText(n)
		rows = append(rows, []cell{txt(n.Node), num(&n.Revision), txt(n.Mode), num(&n.Conflicts), txt(text).withTint(tint)})
	}
	s.printTable("", []string{"NODE", "REVISION", "MODE", "CONFLICTS", "STATE"}, rows)
	for _, n := range st.Nodes {
		rootsNodeDetails(s, n)
	}
}

func rootsNodeText(n adminapi.RootsNode) (text, tint string) {
	switch {
	case n.Error != "":
		return "does not answer: " + n.Error, red
	case n.Off != "":
		return "not replicated: " + n.Off, plain
	case !n.Current && n.Bytes > 0:
		return fmt.Sprintf("%s: %s of %s", n.Phase, bytesText(n.BytesDone), bytesText(n.Bytes)), yellow
	case !n.Current && n.Phase == "idle" && len(n.Problems) > 0: // between two tries
		return "behind, and will try again; why stands below", yellow
	case !n.Current:
		return "behind: " + n.Phase, yellow
	case n.Edited && n.Mode == "manual":
		return "edited here; sync_roots sends it", yellow
	case n.Edited:
		return "current, with edits under way", plain
	}
	return "current", green
}

func rootsNodeDetails(s *screen, n adminapi.RootsNode) {
	if n.Error != "" || len(n.Slots)+len(n.Problems)+len(n.Notes) == 0 {
		return
	}
	s.line("")
	s.line("%s", s.paint(bold, clean(n.Node)))
	rows := make([][]cell, 0, len(n.Slots))
	for _, slot := range n.Slots {
		state := txt(fmt.Sprintf("%s, %s", plural(slot.Files, "file"), bytesText(slot.Bytes)))
		switch {
		case slot.Dir == "":
			state = txt("not configured on this node")
		case slot.Unavailable != "":
			state = txt("left alone: " + slot.Unavailable).withTint(yellow)
		}
		rows = append(rows, []cell{txt(slot.Slot), txt(slot.Dir), state})
	}
	if len(rows) > 0 {
		s.printTable("  ", nil, rows)
	}
	for _, p := range n.Problems {
		s.line("  %s", s.paint(yellow, clean(p)))
	}
	for _, note := range n.Notes {
		s.line("  %s", clean(note))
	}
}

func rootsHistoryScreen(s *screen, h adminapi.RootsHistory) {
	rows := make([][]cell, 0, len(h.Revisions))
	for _, r := range h.Revisions {
		state, tint := r.Kind, plain
		switch {
		case r.State != "applied" && r.State != "":
			state, tint = r.Kind+", "+r.State, yellow
		case r.Current:
			state, tint = r.Kind+", in force", green
		}
		note := txt(r.Note)
		if r.Note == "" {
			note = cell{}
		}
		rows = append(rows, []cell{
			num(&r.Number), txt(formatStamp(r.Time)), txt(r.Author), num(&r.Changed), num(&r.Removed), num(&r.Files),
			txt(state).withTint(tint), note,
		})
	}
	s.printTable("", []string{"REVISION", "TIME", "AUTHOR", "CHANGED", "REMOVED", "FILES", "KIND", "NOTE"}, rows)
}

func rootsConflictsScreen(s *screen, list adminapi.RootsConflicts) {
	rows := make([][]cell, 0, len(list.Conflicts))
	for _, c := range list.Conflicts {
		rows = append(rows, []cell{txt(c.Node), txt(c.ID), txt(c.Slot), txt(c.Path), txt(c.Reason), txt(c.Kept)})
	}
	if len(rows) > 0 {
		s.printTable("", []string{"NODE", "ID", "DIRECTORY", "PATH", "REASON", "KEPT IN"}, rows)
	} else {
		s.line("nothing was put aside")
	}
	if len(list.Missing) > 0 {
		s.line("%s", s.paint(yellow, "no answer from "+clean(strings.Join(list.Missing, ", "))))
	}
}

// rootsRow is the roots' line of the status.
func rootsRow(r *adminapi.RootsLine) [][]cell {
	if r == nil {
		return nil
	}
	text, tint := fmt.Sprintf("%s  revision %d  %s", r.Mode, r.Base, plural(r.Files, "file")), plain
	switch {
	case r.Off != "":
		text = "not replicated: " + r.Off
	case r.Base < r.Head:
		text, tint = fmt.Sprintf("%s  revision %d of %d  %s", r.Mode, r.Base, r.Head, r.Phase), yellow
	}
	if r.Conflicts > 0 {
		text += fmt.Sprintf("  %s aside (saltclusterctl roots conflicts)", plural(r.Conflicts, "conflict"))
	}
	return [][]cell{{{text: "roots"}, txt(text).withTint(tint)}}
}

// bytesText shows a size with one digit after the point.
func bytesText(n int64) string {
	unit, value := "B", float64(n)
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		unit, value = u, value/1024
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}
