package main

import (
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/dryrun"
	"saltclusterd/sidecar/adminapi"
)

func newDrainCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "drain",
		Usage:     "move the minions of NODE, or of this node with --self, to the other nodes, and keep them away",
		ArgsUsage: "NODE",
		Description: "Load balancers are told first. After drain_announce the node accepts no new connections, moves its subscribers in steps and\n" +
			"answers the requests under way. Its salt-master stays usable: its publications reach all minions, and its jobs get their\n" +
			"returns. A drained node stays drained across restarts, until saltclusterctl undrain.",
		Flags: append([]cli.Flag{
			selfFlag(),
			&cli.DurationFlag{Name: "within", Aliases: []string{"over"}, Usage: "move its minions within `TIME`", DefaultText: "its option drain_time"},
			&cli.BoolFlag{Name: "wait-jobs",
				Usage: "finish only when the jobs published there have all returns, or no client waits for them any more"},
			&cli.BoolFlag{Name: "force", Usage: "drain it even if no other node serves minions"},
			dryrun.DryRunFlag(),
		}, drainFlags("drained")...),
		Action: func(c *cli.Context) error {
			node, err := nodeOrSelf(c)
			if err != nil {
				return err
			}
			if node == "" && !c.Bool("self") {
				return console.Usagef("saltclusterctl drain --self drains this node", "drain takes the id of a node, or --self")
			}
			if c.Bool("dry-run") {
				return dryrun.ShowForecast(c, e, dryrun.DrainForecast)
			}
			if c.Duration("within") < 0 {
				return console.Usagef("--within 1m", "invalid --within: it cannot be negative")
			}
			r := adminapi.DrainRequest{
				Node: node, Over: c.Duration("within"), WaitJobs: c.Bool("wait-jobs"), Force: c.Bool("force"),
				Wait: c.Bool("wait"), Timeout: c.Duration("timeout"),
			}
			return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Drain, r))
		},
	})
}

func newUndrainCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:      "undrain",
		Usage:     "let minions connect to NODE again, or to this node if none is named",
		ArgsUsage: "[NODE]",
		Flags:     append([]cli.Flag{selfFlag()}, drainFlags("serving minions")...),
		Action: func(c *cli.Context) error {
			node, err := nodeOrSelf(c)
			if err != nil {
				return err
			}
			r := adminapi.UndrainRequest{Node: node, Wait: c.Bool("wait"), Timeout: c.Duration("timeout")}
			return console.RunOperation(c, e, console.ForRequest((*adminapi.Client).Undrain, r))
		},
	})
}

func drainFlags(until string) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "wait", Value: true, Usage: "wait until it is " + until +
			"; --wait=false returns as soon as it is decided"},
		&cli.DurationFlag{Name: "timeout", Value: 15 * time.Minute,
			Usage: "give up waiting after `TIME`; 0: never. A decision that was already made remains"},
	}
}

func selfFlag() cli.Flag { return &cli.BoolFlag{Name: "self", Usage: "this node, instead of NODE"} }

// nodeOrSelf reads the one argument there may be; "" is this node.
func nodeOrSelf(c *cli.Context) (string, error) {
	switch {
	case c.NArg() > 1:
		return "", console.Usagef("saltclusterctl "+c.Command.Name+" m2", "%s takes at most one argument, the id of a node",
			c.Command.Name)
	case c.NArg() == 1 && c.Bool("self"):
		return "", console.Usagef("saltclusterctl "+c.Command.Name+" m2", "%s takes the id of a node or --self, not both",
			c.Command.Name)
	}
	return c.Args().First(), nil
}
