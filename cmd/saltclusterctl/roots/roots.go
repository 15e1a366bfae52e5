package roots

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func NewRootsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "roots",
		Usage: "show the replication of file_roots and pillar_roots, and make the decisions that need an operator",
		Subcommands: []*cli.Command{
			newRootsStatusCommand(e), newRootsDiffCommand(e), newRootsHistoryCommand(e), newRootsConflictsCommand(e),
			newRootsDecision(e, adminapi.RootsConfirm,
				"put a held revision, which deletes many files, in force; asks for confirmation unless --yes is given"),
			newRootsDecision(e, adminapi.RootsDrop,
				"refuse a held revision: the node that made it restores the deleted files and puts its edits aside"),
			newRootsDecision(e, adminapi.RootsRollback,
				"restore the trees of a former revision on all nodes; it asks for confirmation unless --yes is given"),
			newRootsAside(e, "restore", "put back something that was put aside on this node (roots conflicts), as an edit",
				true),
			newRootsAside(e, "discard",
				"delete for good something that was put aside on this node (roots conflicts); it asks for confirmation unless --yes is given",
				false),
			newRootsRefillCommand(e),
		},
		Action: console.NoSuchWord("saltclusterctl roots --help",
			"status, diff, history, conflicts, confirm, drop, rollback, restore, discard or refill"),
	})
}

func newRootsStatusCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "status", Usage: "show the revision in force and the progress of each node",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).RootsStatus,
				func(s *console.Screen, st adminapi.RootsStatus) { rootsStatusScreen(s, st, time.Now()) })
		}),
	})
}

func newRootsHistoryCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "history", Usage: "list the stored revisions, including those that wait for a decision",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).RootsHistory, rootsHistoryScreen)
		}),
	})
}

func newRootsConflictsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "conflicts", Usage: "list the files that lost a conflict and were put aside, on all nodes",
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).RootsConflicts, rootsConflictsScreen)
		}),
	})
}

func newRootsDiffCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "diff", ArgsUsage: "NODE NODE",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "timeout", Value: 100 * time.Second,
			Usage: "give up after `TIME`; 0: never"}},
		Usage: "compare the disks of two nodes: the changes from the first to the second",
		Action: func(c *cli.Context) error {
			if c.NArg() != 2 {
				return console.Usagef("saltclusterctl roots diff m1 m2", "roots diff takes two arguments, the ids of nodes")
			}
			d, err := console.AskLong(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.RootsDiff, error) {
				return client.RootsDiff(ctx, c.Args().Get(0), c.Args().Get(1))
			}, "both nodes scan their disks")
			if adminapi.CodeOf(err) == adminapi.CodeUnreachable { // which says nothing of the roots
				e.PrintError(err)
				return console.SilentError(console.ExitIncomplete)
			}
			if err != nil {
				return err
			}
			return e.PrintValue(c, d, func(s *console.Screen) {
				switch {
				case len(d.Changes) > 0:
				case len(d.LeftOut) > 0:
					s.Line("%s", console.Clean(d.From+" and "+d.To+" are the same in what was compared"))
				default:
					s.Line("%s", s.Paint(console.Green, console.Clean(d.From+" and "+d.To+" have the same")))
				}
				for _, l := range d.LeftOut {
					s.Line("%s", s.Paint(console.Yellow, console.Clean(l)))
				}
				rootsChangesTable(s, d.Changes, 0, len(d.Changes))
			})
		},
	})
}

// rootsQuestions are asked before decisions that delete or overwrite files on all nodes.
var rootsQuestions = map[string]string{
	adminapi.RootsConfirm:  "put revision %d in force, with its deletions, on all nodes?",
	adminapi.RootsRollback: "restore the trees of all nodes to revision %d?",
}

// newRootsDecision makes the verbs that decide about a revision.
func newRootsDecision(e *console.Env, decision, usage string) *cli.Command {
	flags := rootsWaitFlags()
	question, asks := rootsQuestions[decision]
	if asks {
		flags = append(flags, dryrun.DryRunFlag(), console.YesFlag())
	}
	return console.CompleteCommand(&cli.Command{
		Name: decision, Usage: usage, ArgsUsage: "REVISION", Flags: flags,
		Action: func(c *cli.Context) error {
			n, err := strconv.ParseUint(c.Args().First(), 10, 64)
			if c.NArg() != 1 || err != nil || n == 0 {
				return console.Usagef("saltclusterctl roots history lists them", "roots %s takes one argument, the number of a revision",
					decision)
			}
			if c.Bool("dry-run") {
				return forecastDecision(c, e, decision, n)
			}
			if asks {
				if err := e.AskConsent(c, fmt.Sprintf(question, n)); err != nil {
					return err
				}
			}
			r := adminapi.DecideRootsRequest{Decision: decision, Revision: n, Wait: c.Bool("wait"),
				Timeout: c.Duration("timeout")}
			return operateRoots(c, e, console.ForRequest((*adminapi.Client).DecideRoots, r))
		},
	})
}

// newRootsAside makes the verbs that decide about what was put aside.
func newRootsAside(e *console.Env, name, usage string, restore bool) *cli.Command {
	flags := []cli.Flag{console.TimeoutFlag()}
	if !restore {
		flags = append(flags, dryrun.DryRunFlag(), console.YesFlag(), &cli.StringFlag{
			Name: "path", Usage: "instead of an ID: everything put aside on this node whose path or file name matches `PATTERN`, for example '*.log'",
		})
	}
	return console.CompleteCommand(&cli.Command{
		Name: name, Usage: usage, ArgsUsage: "ID", Flags: flags,
		Action: func(c *cli.Context) error {
			if c.IsSet("path") {
				return discardLike(c, e, c.String("path"))
			}
			if c.NArg() != 1 {
				return console.Usagef("saltclusterctl roots conflicts lists them", "roots %s takes one argument, the id of a conflict",
					name)
			}
			if c.Bool("dry-run") {
				return forecastDiscard(c, e)
			}
			if !restore {
				if err := e.AskConsent(c, fmt.Sprintf("remove %s for good?", console.Clean(c.Args().First()))); err != nil {
					return err
				}
			}
			r := adminapi.AsideRootsRequest{ID: c.Args().First(), Restore: restore}
			return operateRoots(c, e, console.ForRequest((*adminapi.Client).AsideRoots, r))
		},
	})
}

func newRootsRefillCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "refill", ArgsUsage: "DIRECTORY", Flags: []cli.Flag{dryrun.DryRunFlag(), console.YesFlag(), console.TimeoutFlag()},
		Usage: "copy the cluster's content into a directory of this node that is left alone because it was replaced, for example by a new disk",
		Description: "Not for a file system that is just not mounted: mount it, and nothing else is needed. Content of the directory that differs\n" +
			"from the cluster's is put aside (roots conflicts). No other node is changed.",
		Action: console.WithOneArg(e, "saltclusterctl roots status lists them",
			"roots refill takes one argument, a directory of file_roots or pillar_roots",
			func(c *cli.Context, e *console.Env) error {
				dir := c.Args().First()
				if !filepath.IsAbs(dir) {
					return console.Usagef("saltclusterctl roots status lists them",
						"roots refill takes the absolute path of the directory, as it is configured")
				}
				if c.Bool("dry-run") {
					return forecastRefill(c, e, dir)
				}
				question := fmt.Sprintf("use %s as it is mounted now for this node's roots, and fill it with the cluster's content?", console.Clean(dir))
				if err := e.AskConsent(c, question); err != nil {
					return err
				}
				r := adminapi.RefillRootsRequest{Dir: dir, Timeout: c.Duration("timeout")}
				return operateRoots(c, e, console.ForRequest((*adminapi.Client).RefillRoots, r))
			}),
	})
}

func rootsStatusScreen(s *console.Screen, st adminapi.RootsStatus, now time.Time) {
	if st.Head == nil {
		text := "no revision yet"
		if !slices.ContainsFunc(st.Nodes, func(n adminapi.RootsNode) bool {
			return n.Error != "" || n.Off != "" || slices.ContainsFunc(n.Slots,
				func(slot adminapi.RootsSlot) bool { return slot.Files > 0 })
		}) {
			text = "no revision yet: the roots of all nodes are empty; the first file creates one"
		}
		s.Line("%s  %s", s.Paint(console.Bold, "roots"), text)
	} else {
		h := st.Head
		s.Line("%s  revision %d by %s, %s ago: %s, %s", s.Paint(console.Bold, "roots"), h.Number, console.Clean(h.Author),
			console.FormatAge(now.Sub(h.Time)),
			wording.Plural(h.Files, "file"), bytesText(h.Bytes))
	}
	s.Line("")
	rows := make([][]console.Cell, 0, len(st.Nodes))
	for _, n := range st.Nodes {
		text, tint := rootsNodeText(n)
		rows = append(rows, []console.Cell{console.Txt(n.Node), console.Num(&n.Revision), console.Txt(n.Mode),
			console.Num(&n.Conflicts), console.Txt(text).WithTint(tint)})
	}
	s.PrintTable("", []string{"NODE", "REVISION", "MODE", "CONFLICTS", "STATE"}, rows)
	for _, n := range st.Nodes {
		rootsNodeDetails(s, n)
	}
}

func rootsNodeText(n adminapi.RootsNode) (text, tint string) {
	switch {
	case n.Error != "":
		return "does not answer: " + n.Error, console.Red
	case n.Off != "":
		return "not replicated: " + n.Off, console.Plain
	case !n.Current && n.Bytes > 0:
		return fmt.Sprintf("%s: %s of %s", n.Phase, bytesText(n.BytesDone), bytesText(n.Bytes)), console.Yellow
	case !n.Current && n.Phase == "idle" && len(n.Problems) > 0: // between two tries
		return "behind, will retry; the reason is below", console.Yellow
	case !n.Current:
		return "behind: " + n.Phase, console.Yellow
	case n.Edited && n.Mode == "manual":
		return "edited here; sync_roots sends it", console.Yellow
	case n.Edited:
		return "current, with edits under way", console.Plain
	}
	return "current", console.Green
}

func rootsNodeDetails(s *console.Screen, n adminapi.RootsNode) {
	if n.Error != "" || len(n.Slots)+len(n.Problems)+len(n.Notes) == 0 {
		return
	}
	s.Line("")
	s.Line("%s", s.Paint(console.Bold, console.Clean(n.Node)))
	rows := make([][]console.Cell, 0, len(n.Slots))
	for _, slot := range n.Slots {
		state := console.Txt(fmt.Sprintf("%s, %s", wording.Plural(slot.Files, "file"), bytesText(slot.Bytes)))
		switch {
		case slot.Dir == "":
			state = console.Txt("not configured on this node")
		case slot.Unavailable != "":
			state = console.Txt("left alone: " + slot.Unavailable).WithTint(console.Yellow)
		}
		rows = append(rows, []console.Cell{console.Txt(slot.Slot), console.Txt(slot.Dir), state})
	}
	if len(rows) > 0 {
		s.PrintTable("  ", nil, rows)
	}
	for _, p := range n.Problems {
		s.Line("  %s", s.Paint(console.Yellow, console.Clean(p)))
	}
	for _, note := range n.Notes {
		s.Line("  %s", console.Clean(note))
	}
}

func rootsHistoryScreen(s *console.Screen, h adminapi.RootsHistory) {
	rows := make([][]console.Cell, 0, len(h.Revisions))
	for _, r := range h.Revisions {
		state, tint := r.Kind, console.Plain
		switch {
		case r.State != "applied" && r.State != "":
			state, tint = r.Kind+", "+r.State, console.Yellow
		case r.Current:
			state, tint = r.Kind+", in force", console.Green
		}
		note := console.Txt(r.Note)
		if r.Note == "" {
			note = console.Cell{}
		}
		rows = append(rows, []console.Cell{
			console.Num(&r.Number), console.Txt(console.FormatStamp(r.Time)), console.Txt(r.Author), console.Num(&r.Changed),
			console.Num(&r.Removed), console.Num(&r.Files),
			console.Txt(state).WithTint(tint), note,
		})
	}
	s.PrintTable("", []string{"REVISION", "TIME", "AUTHOR", "CHANGED", "REMOVED", "FILES", "KIND", "NOTE"}, rows)
}

func rootsConflictsScreen(s *console.Screen, list adminapi.RootsConflicts) {
	rows := make([][]console.Cell, 0, len(list.Conflicts))
	for _, c := range list.Conflicts {
		rows = append(rows, []console.Cell{console.Txt(c.Node), console.Txt(c.ID), console.Txt(c.Slot), console.Txt(c.Path),
			console.Txt(c.Reason), console.Txt(c.Kept)})
	}
	if len(rows) > 0 {
		s.PrintTable("", []string{"NODE", "ID", "DIRECTORY", "PATH", "REASON", "KEPT IN"}, rows)
	} else {
		s.Line("nothing was put aside")
	}
	s.PrintMissing(list.Missing)
}

// RootsRow is the roots' line of the status.
func RootsRow(r *adminapi.RootsLine) [][]console.Cell {
	if r == nil {
		return nil
	}
	text, tint := fmt.Sprintf("%s  revision %d  %s", r.Mode, r.Base, wording.Plural(r.Files, "file")), console.Plain
	switch {
	case r.Off != "":
		text = "not replicated: " + r.Off
	case r.Base < r.Head:
		text, tint = fmt.Sprintf("%s  revision %d of %d  %s", r.Mode, r.Base, r.Head, r.Phase), console.Yellow
	}
	if r.Conflicts > 0 {
		text += fmt.Sprintf("  %s aside (saltclusterctl roots conflicts)", wording.Plural(r.Conflicts, "conflict"))
	}
	return [][]console.Cell{{{Text: "roots"}, console.Txt(text).WithTint(tint)}}
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
