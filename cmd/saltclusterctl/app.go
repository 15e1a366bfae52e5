package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/keys"
	"saltclusterd/cmd/saltclusterctl/migrate"
	"saltclusterd/cmd/saltclusterctl/roots"
	"saltclusterd/cmd/saltclusterctl/snapshot"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/cmd/saltclusterd/config"
)

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, e *console.Env) int {
	if e.Stdin != nil {
		e.Stdin = console.Interruptible(ctx, e.Stdin)
	}
	app := newApp(e)
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		args = []string{"version"}
	}
	err := console.RefuseEmpty(args)
	if err == nil {
		err = app.RunContext(ctx, append([]string{app.Name}, console.ArrangeArgs(app, args)...))
	}
	if err != nil {
		e.PrintError(err)
	}
	return console.ExitCode(err)
}

func newApp(e *console.Env) *cli.App {
	app := &cli.App{
		Name:                  "saltclusterctl",
		Usage:                 "inspect and manage a cluster of salt-masters",
		Description:           "Asks the saltclusterd of this host. Every node knows the whole cluster, even while other nodes are down.",
		Reader:                e.Stdin,
		Writer:                e.Stdout,
		ErrWriter:             e.Stderr,
		HideVersion:           true,
		CustomAppHelpTemplate: cli.AppHelpTemplate + "\n" + console.ExitCodesHelp,
		ExitErrHandler:        func(*cli.Context, error) {}, // run decides
		OnUsageError:          console.OnUsageError,
		Commands: slices.Concat(
			category("Set up", newSetupCommand(e), newBootstrapCommand(e), newJoinCommand(e), newTokenCommand(e),
				newHAProxyCommand(e)),
			category("Look", newStatusCommand(e), newMembersCommand(e), newTopCommand(e), newMinionsCommand(e),
				newJobsCommand(e), newEventsCommand(e), newRingInfoCommand(e), newWallCommand(e)),
			category("Maintain", newDrainCommand(e), newUndrainCommand(e), newUpgradeCommand(e), newTransferCommand(e),
				newRotateCommand(e), snapshot.NewSnapshotCommand(e), newConfigCommand(e)),
			category("Data", keys.NewKeysCommand(e), roots.NewRootsCommand(e), roots.NewSyncRootsCommand(e), newReturnsCommand(e),
				newVerifyCommand(e)),
			category("Leave, disaster", newRemoveCommand(e), newLeaveCommand(e), snapshot.NewRecoverCommand(e),
				migrate.NewMigrateCommand(e)),
			category("Support", support.NewDoctorCommand(e), support.NewBundleCommand(e), support.NewLogsCommand(e), support.NewProfileCommand(e),
				newCompletionCommand(e), newCompleteCommand(e), newVersionCommand(e), newManualCommand(e)),
		),
	}
	console.VisitCommands(app.Commands, func(c *cli.Command) {
		c.Before = func(c *cli.Context) error {
			e.Colour = e.Colour && !c.Bool("no-color")
			return nil
		}
		for _, f := range c.Flags {
			if b, ok := f.(*cli.BoolFlag); ok && !b.Value {
				b.DisableDefaultText = true // the default, false, is obvious
			}
		}
	})
	app.Action = func(c *cli.Context) error {
		if !c.Args().Present() {
			return cli.ShowAppHelp(c)
		}
		name := c.Args().First()
		var names []string
		for _, known := range visibleCommands(app.Commands) {
			names = append(names, known.Names()...)
		}
		if near := config.Suggest(name, names); near != "" {
			return console.Usagef("saltclusterctl help lists all", "unknown command %q (did you mean %s?)", name, near)
		}
		return console.Usagef("saltclusterctl help lists all", "unknown command %q", name)
	}
	return app
}

// category puts commands under a heading of the help.
func category(name string, commands ...*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.Category = name
	}
	return commands
}
