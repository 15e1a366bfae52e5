package roots

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func NewSyncRootsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "sync_roots", Aliases: []string{"sync-roots"},
		Usage: "copy this node's file_roots and pillar_roots to all other nodes now",
		Description: "It shows progress and waits until every node has the content, then shows what was installed and removed where. The exit code\n" +
			"is an error unless all nodes have it. Changes made on other nodes in the meantime are merged, not overwritten. With --force or --accept\n" +
			"it asks for confirmation, unless --yes is given, because all files deleted here are then deleted on all nodes.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be sent"},
			&cli.StringFlag{Name: "env", Usage: "only the directories of the environment `ENV`"},
			&cli.BoolFlag{Name: "force", Usage: "apply it even if it deletes so much that it would wait for roots confirm"},
			&cli.StringFlag{Name: "accept",
				Usage: "include the present content of `DIRECTORY`, which is excluded because the directory was replaced (roots status)"},
			console.YesFlag(),
		}, rootsWaitFlags()...),
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			if c.Bool("dry-run") && c.String("accept") != "" {
				return console.Usagef("compare the directory with that of another node by hand",
					"--accept cannot be combined with --dry-run")
			}
			if err := consentToSync(e, c); err != nil {
				return err
			}
			r := adminapi.SyncRootsRequest{
				DryRun: c.Bool("dry-run"), Env: c.String("env"), Force: c.Bool("force"), Accept: c.String("accept"),
				Wait: c.Bool("wait"), Timeout: c.Duration("timeout"),
			}
			return operateRoots(c, e, console.ForRequest((*adminapi.Client).SyncRoots, r))
		}),
	})
}

// consentToSync asks before what was deleted here is deleted everywhere without having been held.
func consentToSync(e *console.Env, c *cli.Context) error {
	switch dir := c.String("accept"); {
	case c.Bool("dry-run"):
		return nil
	case dir != "":
		return e.AskConsent(c, fmt.Sprintf("copy the content of %s to all nodes, and delete there what it does not contain?", console.Clean(dir)))
	case c.Bool("force"):
		return e.AskConsent(c, "delete on all nodes everything that was deleted here?")
	}
	return nil
}

func rootsWaitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Value: true,
			Usage: "wait until it is on every node; --wait=false returns as soon as it is decided"},
		&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute,
			Usage: "give up waiting after `TIME`; 0: never. A decision that was already made remains"},
	}
}

// operateRoots runs an operation on the roots, shows what it did on each node, and fails unless it is done on all.
func operateRoots(c *cli.Context, e *console.Env, op console.Operation) error {
	out, err := console.Operate(c, e, op)
	if err != nil {
		return err
	}
	if err := e.PrintValue(c, out, func(s *console.Screen) { rootsOutcomeText(s, out) }); err != nil {
		return err
	}
	switch {
	case out.Roots == nil:
	case out.Roots.Held:
		return console.SilentError(console.ExitRefused)
	case len(out.Roots.Failed) > 0:
		return console.SilentError(console.ExitTimeout)
	}
	return nil
}

// shownChanges bounds what a person is shown of a list of changes; --out json has all.
const shownChanges = 40

func rootsOutcomeText(s *console.Screen, o adminapi.Outcome) {
	if r := o.Roots; r != nil {
		if r.DryRun || r.Held {
			rootsChangesTable(s, r.Changes, r.More, shownChanges)
		}
		rootsAppliedTable(s, r.Nodes)
		if r.Held || len(r.Failed) > 0 {
			s.Line("%s", s.Paint(console.Red, console.Clean(o.Message)))
			console.NextSteps(s, o.Next)
			return
		}
	}
	console.OutcomeText(s, o)
}

func rootsAppliedTable(s *console.Screen, nodes []adminapi.RootsApplied) {
	if len(nodes) == 0 {
		return
	}
	rows := make([][]console.Cell, 0, len(nodes))
	for _, n := range nodes {
		state := console.Txt("applied").WithTint(console.Green)
		switch {
		case n.Error != "":
			state = console.Txt(n.Error).WithTint(console.Red)
		case n.Skipped != "":
			state = console.Txt("left out: " + n.Skipped)
		case n.Author:
			state = console.Txt("its own edit").WithTint(console.Green)
		}
		rows = append(rows, []console.Cell{console.Txt(n.Node), console.Num(&n.Revision), console.Num(&n.Installed),
			console.Num(&n.Removed), console.Num(&n.Aside), state})
	}
	s.PrintTable("", []string{"NODE", "REVISION", "INSTALLED", "REMOVED", "ASIDE", "STATE"}, rows)
}

func rootsChangesTable(s *console.Screen, changes []adminapi.RootsChange, more, most int) {
	rows := make([][]console.Cell, 0, min(len(changes), most))
	for _, c := range changes[:min(len(changes), most)] {
		rows = append(rows, []console.Cell{console.Txt(c.What), console.Txt(c.Slot), console.Txt(c.Path)})
	}
	if len(rows) > 0 {
		s.PrintTable("", []string{"CHANGE", "DIRECTORY", "PATH"}, rows)
	}
	if more += len(changes) - len(rows); more > 0 {
		s.Line("and %d more", more)
	}
}
