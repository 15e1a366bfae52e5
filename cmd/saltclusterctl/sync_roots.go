package main

import (
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newSyncRootsCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name: "sync_roots", Aliases: []string{"sync-roots"},
		Usage: "give what stands in this node's file_roots and pillar_roots to all other nodes, now",
		Description: "Shows progress and waits until every node has it, then what was installed and removed where. Anything else than all nodes\n" +
			"having it is an error exit. What other nodes have changed meanwhile is merged, not overwritten. With --force or --accept it asks\n" +
			"before, unless --yes is given: what was deleted here is deleted on all nodes, however much it is.",
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "dry-run", Usage: "only say what would be sent"},
			&cli.StringFlag{Name: "env", Usage: "only the directories of the environment `ENV`"},
			&cli.BoolFlag{Name: "force", Usage: "also when so much is deleted that it would wait for roots confirm"},
			&cli.StringFlag{Name: "accept",
				Usage: "also what is in `DIRECTORY` now, which is left alone because another is in its place (roots status)"},
			yesFlag(),
		}, rootsWaitFlags()...),
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			if c.Bool("dry-run") && c.String("accept") != "" {
				return usagef("compare the directory with that of another node by hand",
					"--accept cannot be combined with --dry-run")
			}
			if err := checkOperation(c); err != nil {
				return err
			}
			if err := e.consentToSync(c); err != nil {
				return err
			}
			r := adminapi.SyncRootsRequest{
				DryRun: c.Bool("dry-run"), Env: c.String("env"), Force: c.Bool("force"), Accept: c.String("accept"),
				Wait: c.Bool("wait"), Timeout: c.Duration("timeout"),
			}
			return operateRoots(c, e, func(ctx context.Context, client *adminapi.Client,
				p func(adminapi.Progress)) (adminapi.Outcome, error) {
				return client.SyncRoots(ctx, r, p)
			})
		},
	})
}

// consentToSync asks before what was deleted here is deleted everywhere without having been held.
func (e *env) consentToSync(c *cli.Context) error {
	switch dir := c.String("accept"); {
	case c.Bool("dry-run"):
		return nil
	case dir != "":
		return e.askConsent(c, fmt.Sprintf("give all nodes what is in %s now, and delete there what is not in it?", clean(dir)))
	case c.Bool("force"):
		return e.askConsent(c, "delete on all nodes what was deleted here, however much it is?")
	}
	return nil
}

func rootsWaitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Value: true,
			Usage: "wait until it is on every node; --wait=false returns as soon as it is decided"},
		&cli.DurationFlag{Name: "timeout", Value: 10 * time.Minute,
			Usage: "give up waiting after `TIME`; 0: never. A decision already made stands"},
	}
}

// operateRoots runs an operation on the roots, shows what it did on each node, and fails unless it is done on all.
func operateRoots(c *cli.Context, e *env,
	call func(context.Context, *adminapi.Client, func(adminapi.Progress)) (adminapi.Outcome, error),
) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	ctx, cancel := c.Context, context.CancelFunc(func() {})
	if t := c.Duration("timeout"); t > 0 {
		ctx, cancel = context.WithTimeout(ctx, t+replyMargin)
	}
	defer cancel()
	client := e.openClient(c)
	defer client.Close()
	t := &progressBar{e: e}
	out, err := call(ctx, client, t.showStep)
	t.endBar()
	if err != nil {
		return err
	}
	if err := e.printValue(c, out, func(s *screen) { rootsOutcomeText(s, out) }); err != nil {
		return err
	}
	switch {
	case out.Roots == nil:
	case out.Roots.Held:
		return &silentError{exitRefused}
	case len(out.Roots.Failed) > 0:
		return &silentError{exitTimeout}
	}
	return nil
}

// shownChanges bounds what a person is shown of a list of changes; --out json has all.
const shownChanges = 40

func rootsOutcomeText(s *screen, o adminapi.Outcome) {
	if r := o.Roots; r != nil {
		if r.DryRun || r.Held {
			rootsChangesTable(s, r.Changes, r.More, shownChanges)
		}
		rootsAppliedTable(s, r.Nodes)
		if r.Held || len(r.Failed) > 0 {
			s.line("%s", s.paint(red, clean(o.Message)))
			nextSteps(s, o.Next)
			return
		}
	}
	outcomeText(s, o)
}

func rootsAppliedTable(s *screen, nodes []adminapi.RootsApplied) {
	if len(nodes) == 0 {
		return
	}
	rows := make([][]cell, 0, len(nodes))
	for _, n := range nodes {
		state := txt("applied").withTint(green)
		switch {
		case n.Error != "":
			state = txt(n.Error).withTint(red)
		case n.Skipped != "":
			state = txt("left out: " + n.Skipped)
		case n.Author:
			state = txt("its own edit").withTint(green)
		}
		rows = append(rows, []cell{txt(n.Node), num(&n.Revision), num(&n.Installed), num(&n.Removed), num(&n.Aside), state})
	}
	s.printTable("", []string{"NODE", "REVISION", "INSTALLED", "REMOVED", "ASIDE", "STATE"}, rows)
}

func rootsChangesTable(s *screen, changes []adminapi.RootsChange, more, most int) {
	rows := make([][]cell, 0, min(len(changes), most))
	for _, c := range changes[:min(len(changes), most)] {
		rows = append(rows, []cell{txt(c.What), txt(c.Slot), txt(c.Path)})
	}
	if len(rows) > 0 {
		s.printTable("", []string{"CHANGE", "DIRECTORY", "PATH"}, rows)
	}
	if more += len(changes) - len(rows); more > 0 {
		s.line("and %d more", more)
	}
}
