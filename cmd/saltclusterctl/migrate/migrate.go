package migrate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func NewMigrateCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "migrate",
		Usage:     "move the masters from a shared file system to their own disks, one node after the other; minions do not notice",
		ArgsUsage: "NODE",
		Description: "For each node: the files that its master has on the share are copied to its own disk and compared by hash, its\n" +
			"configuration is changed by two drop-ins, saltclusterd is upgraded in place, and the salt-master is restarted. The next\n" +
			"node follows when this one serves minions, has caught up with the cluster, and verify finds no difference. Until the last\n" +
			"node has left the share, one of those still on it is the stand-in: it passes changes on the share to the nodes that have\n" +
			"left, and their changes to the share. If it is refused or killed, run it again to resume. Copying only reads the share.\n" +
			"Without NODE and --all-nodes it shows what would be done on each node, and changes nothing.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "all-nodes", Aliases: []string{"all"}, Usage: "all nodes, one after the other"},
			console.YesFlag(),
			&cli.BoolFlag{Name: "dry-run", Usage: "only show what would be done on each node"},
			&cli.BoolFlag{Name: "status", Hidden: true}, // of earlier builds
			&cli.StringFlag{Name: "to",
				Usage: "put the copies into `DIR` on every node; default: var/lib/salt-master below the master's root_dir"},
			&cli.StringFlag{Name: "stand-in",
				Usage: "`NODE` leaves the share last and is the stand-in until then; default: the last by id"},
			&cli.BoolFlag{Name: "back", Hidden: true}, // of earlier builds
			&cli.DurationFlag{Name: "healthy-within", Value: defaultHealthy,
				Usage: "stop if a node is not healthy within `TIME`, before the next one"},
			timeoutFlag(),
		},
		Subcommands: []*cli.Command{
			console.CompleteCommand(&cli.Command{
				Name: "status", Usage: "show how far each node is",
				Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
					return startMigrate(c, e, statusMode)
				}),
			}),
			console.CompleteCommand(&cli.Command{
				Name: "back", ArgsUsage: "NODE",
				Usage: "move NODE back to the share; possible while another node is the stand-in",
				Flags: []cli.Flag{console.YesFlag(), timeoutFlag()},
				Action: console.WithOneArg(e, "saltclusterctl migrate back m2", "migrate back takes one argument, the id of a node",
					func(c *cli.Context, e *console.Env) error { return startMigrate(c, e, backMode) }),
			}),
		},
		Action: func(c *cli.Context) error {
			switch {
			case c.NArg() > 1:
				return console.Usagef("saltclusterctl migrate m2", "migrate takes at most one argument, the id of a node")
			case c.Bool("all-nodes") && (c.NArg() == 1 || c.Bool("back")):
				return console.Usagef("saltclusterctl migrate --all-nodes", "--all-nodes cannot be combined with NODE")
			case c.Bool("back") && c.NArg() == 0:
				return console.Usagef("saltclusterctl migrate back m2", "migrate back takes one argument, the id of a node")
			case c.Bool("status"):
				return startMigrate(c, e, statusMode)
			case c.Bool("back"):
				return startMigrate(c, e, backMode)
			}
			return startMigrate(c, e, moveMode)
		},
	})
}

// What migrate does.
const (
	moveMode   = "move"
	statusMode = "status"
	backMode   = "back"
)

func timeoutFlag() cli.Flag {
	return &cli.DurationFlag{Name: "timeout",
		Usage: "give up waiting after `TIME`; 0: never. When it is run again, it resumes where it was"}
}

func startMigrate(c *cli.Context, e *console.Env, mode string) error {
	ctx, cancel := console.WithTimeout(c)
	defer cancel()
	err := runMigrate(ctx, c, e, mode)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return adminapi.Errorf(adminapi.CodeTimeout,
			"saltclusterctl migrate --all-nodes resumes where it was; saltclusterctl migrate status says where that is",
			"not done within %s", c.Duration("timeout"))
	}
	return err
}

func runMigrate(ctx context.Context, c *cli.Context, e *console.Env, mode string) error {
	g := &guide{
		e: e, client: e.OpenClient(c), to: c.String("to"), standIn: c.String("stand-in"), only: c.Args().First(),
		healthy: c.Duration("healthy-within"),
	}
	defer g.client.Close()
	bare := c.NArg() == 0 && !c.Bool("all-nodes")
	switch {
	case mode == statusMode, c.Bool("dry-run"), bare:
		plan := mode != statusMode
		m, err := g.client.Migration(ctx, plan, g.to)
		if err != nil {
			return err
		}
		if err := e.PrintValue(c, m, func(s *console.Screen) {
			migrationScreen(s, m, plan)
			switch {
			case plan && !isOnShare(m):
				s.Line(nothingShared)
			case bare && plan:
				console.NextSteps(s, []string{"saltclusterctl migrate --all-nodes: all nodes, one after the other",
					"saltclusterctl migrate NODE: only this one"})
			}
		}); err != nil {
			return err
		}
		if slices.ContainsFunc(m.Nodes, func(n adminapi.MigrateNode) bool { return n.Shared && len(n.Refused) > 0 }) {
			return console.SilentError(console.ExitRefused)
		}
		if bare && plan && !c.Bool("dry-run") {
			return console.SilentError(console.ExitUsage) // a script that meant to migrate must notice that nothing was done
		}
		return nil
	case mode == backMode:
		if err := e.AskConsent(c, fmt.Sprintf("move %s back to the share?", console.Clean(g.only))); err != nil {
			return err
		}
		// A step waits for a saltclusterd that makes way for another one. The first question waits for none.
		if _, err := g.client.Migration(ctx, false, ""); err != nil {
			return err
		}
		return g.moveBack(ctx)
	}
	if err := e.AskConsent(c, fmt.Sprintf("move %s off the share?",
		console.Clean(cmp.Or(g.only, "all nodes, one after the other,")))); err != nil {
		return err
	}
	before, err := g.client.Migration(ctx, false, "")
	if err != nil {
		return err
	}
	if err := g.runMigration(ctx); err != nil {
		return err
	}
	m, err := g.client.Migration(ctx, false, "")
	if err != nil {
		return err
	}
	return e.PrintValue(c, m, func(s *console.Screen) {
		migrationScreen(s, m, false)
		if !isOnShare(before) {
			s.Line(nothingShared)
			return
		}
		migrationNext(s, m)
	})
}

const nothingShared = "no node works on a shared file system: there is nothing to migrate"

// isOnShare says whether a node has to leave the share, or is leaving it. Of those that do not answer it is not known.
func isOnShare(m adminapi.Migration) bool {
	return len(m.Missing) > 0 || slices.ContainsFunc(m.Nodes, func(n adminapi.MigrateNode) bool {
		return n.Shared || n.Stage != "isolated"
	})
}

func migrationScreen(s *console.Screen, m adminapi.Migration, plan bool) {
	rows := make([][]console.Cell, 0, len(m.Nodes))
	for _, n := range m.Nodes {
		stage := console.Txt(n.Stage)
		switch {
		case n.Stage == "isolated":
			stage = stage.WithTint(console.Green)
		case n.Stage == "switching":
			stage = stage.WithTint(console.Yellow)
		}
		what := n.Doing
		switch {
		case n.Error != "":
			what = n.Error
		case n.ByHand != nil:
			what = "waits: " + n.ByHand.Why
		case what == "" && n.StandIn:
			what = "stand-in for the share"
		case what == "":
			what = n.Behind
		}
		rows = append(rows, []console.Cell{console.Txt(n.Node), stage, console.Txt(what)})
	}
	s.PrintTable("", []string{"NODE", "FILES", ""}, rows)
	for id, why := range m.Missing {
		s.Line("%s: %s", console.Clean(id), s.Paint(console.Red, console.Clean(why)))
	}
	for _, n := range m.Nodes {
		byHand(s, n)
		if !plan || !n.Shared {
			continue
		}
		s.Line("")
		s.Line("%s:", s.Paint(console.Bold, console.Clean(n.Node)))
		for _, why := range n.Refused {
			s.Line("  %s", s.Paint(console.Red, "refused: "+console.Clean(why)))
		}
		for i, step := range n.Steps {
			s.Line("  %d. %s", i+1, console.Clean(step))
		}
		for _, note := range n.Notes {
			s.Line("  note: %s", console.Clean(note))
		}
	}
}

// byHand prints commands line by line: they are there to be pasted.
func byHand(s *console.Screen, n adminapi.MigrateNode) {
	if n.ByHand == nil || len(n.ByHand.Commands) == 0 {
		return
	}
	s.Line("on %s, %s:", console.Clean(n.Node), console.Clean(n.ByHand.Why))
	for _, cmd := range n.ByHand.Commands {
		for line := range strings.Lines(cmd) {
			s.Line("    %s", console.Clean(strings.TrimSuffix(line, "\n")))
		}
	}
}

// migrationNext says what is left to do.
func migrationNext(s *console.Screen, m adminapi.Migration) {
	shared, notes := 0, 0
	for _, n := range m.Nodes {
		if n.Shared {
			shared++
		}
		for _, note := range n.Notes {
			notes++
			s.Line("%s: %s", console.Clean(n.Node), console.Clean(note))
		}
	}
	switch {
	case shared > 0:
		console.NextSteps(s, []string{"saltclusterctl migrate --all-nodes: " + fmt.Sprint(shared) + " still on the share"})
	case notes > 0:
		console.NextSteps(s, []string{"move what is named above, then unmount the share on every node"})
	default:
		console.NextSteps(s, []string{
			"unmount the share on every node, and take it out of fstab",
			"move the options of the two drop-ins to your own configuration management: the salt-master's " +
				"zzz-saltclusterd-isolated.conf, saltclusterd's zz-isolated.conf",
		})
	}
}
