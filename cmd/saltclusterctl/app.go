package main

import (
	"context"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, e *env) int {
	app := newApp(e)
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		args = []string{"version"}
	}
	err := app.RunContext(ctx, append([]string{app.Name}, arrangeArgs(app, args)...))
	if err != nil {
		e.printError(err)
	}
	return exitCode(err)
}

func newApp(e *env) *cli.App {
	app := &cli.App{
		Name:                  "saltclusterctl",
		Usage:                 "look at and steer a cluster of salt-masters",
		Description:           "Asks the saltclusterd of this host; every node knows the whole cluster, also while others are down.",
		Reader:                e.stdin,
		Writer:                e.stdout,
		ErrWriter:             e.stderr,
		HideVersion:           true,
		CustomAppHelpTemplate: cli.AppHelpTemplate + "\n" + exitCodesHelp,
		ExitErrHandler:        func(*cli.Context, error) {}, // run decides
		OnUsageError:          onUsageError,
		Commands: slices.Concat(
			category("Set up", newSetupCommand(e), newBootstrapCommand(e), newJoinCommand(e), newTokenCommand(e),
				newHAProxyCommand(e)),
			category("Look", newStatusCommand(e), newMembersCommand(e), newTopCommand(e), newMinionsCommand(e),
				newJobsCommand(e), newEventsCommand(e), newRingInfoCommand(e), newWallCommand(e)),
			category("Maintain", newDrainCommand(e), newUndrainCommand(e), newUpgradeCommand(e), newTransferCommand(e),
				newRotateCommand(e), newSnapshotCommand(e), newConfigCommand(e)),
			category("Data", newKeysCommand(e), newRootsCommand(e), newSyncRootsCommand(e), newReturnsCommand(e),
				newVerifyCommand(e)),
			category("Leave, disaster", newRemoveCommand(e), newLeaveCommand(e), newRecoverCommand(e),
				newMigrateCommand(e)),
			category("Support", newDoctorCommand(e), newBundleCommand(e), newLogsCommand(e), newProfileCommand(e),
				newCompletionCommand(e), newVersionCommand(e), newManualCommand(e)),
		),
	}
	visitCommands(app.Commands, func(c *cli.Command) {
		c.Before = func(c *cli.Context) error {
			e.colour = e.colour && !c.Bool("no-color")
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
		return usagef(cli.SuggestCommand(app.Commands, name)+" saltclusterctl help lists all.", "%q is not a command", name)
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

// completeCommand completes a command with the flags and the error handling all have.
func completeCommand(c *cli.Command) *cli.Command {
	c.OnUsageError = onUsageError
	c.HideHelpCommand = true
	if len(c.Subcommands) == 0 {
		c.CustomHelpTemplate = cli.CommandHelpTemplate + "\n" + exitCodesHelp
	}
	if !hasFlag(c, "timeout") {
		c.Flags = append(c.Flags, &cli.DurationFlag{Name: "timeout", Value: askTimeout, Usage: "give up after `TIME`"})
	}
	c.Flags = append(c.Flags,
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Value: "table",
			Usage: "`FORMAT` of the output: " + strings.Join(formats, ", ")},
		&cli.BoolFlag{Name: "no-color", Aliases: []string{"no-colour"},
			Usage: "no colours, on a terminal either; as NO_COLOR does"},
		&cli.StringFlag{Name: "socket",
			Usage: "admin socket (`PATH`) of saltclusterd; default: $SALTCLUSTERD_SOCKET, then its configuration"},
		&cli.StringFlag{Name: "config", Usage: "main configuration file (`PATH`); default: $SALTCLUSTERD_CONFIG, then " +
			config.DefaultPath},
	)
	return c
}

// visitCommands calls f for all commands and their subcommands.
func visitCommands(commands []*cli.Command, f func(*cli.Command)) {
	for _, c := range commands {
		f(c)
		visitCommands(c.Subcommands, f)
	}
}

func hasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

func onUsageError(c *cli.Context, err error, _ bool) error {
	name, flags := "saltclusterctl", []cli.Flag(nil)
	if c.Command != nil && strings.HasPrefix(c.Command.HelpName, name+" ") {
		name, flags = c.Command.HelpName, c.Command.Flags // with the verb that a verb is part of
	}
	return usagef(name+" --help", "%s", flagMistake(err.Error(), flags))
}

// noSuchWord is the error for a verb that must be followed by one of words, and was not.
func noSuchWord(c *cli.Context, hint, words string) error {
	if !c.Args().Present() {
		return usagef(hint, "%s needs a subcommand: %s", c.Command.Name, words)
	}
	return usagef(hint, "%s has no %q: it is %s", c.Command.Name, c.Args().First(), words)
}

// noArgs refuses positional arguments.
func noArgs(c *cli.Context) error {
	if c.Args().Present() {
		return usagef("saltclusterctl "+c.Command.Name+" --help", "%s takes no argument, but got %q", c.Command.Name,
			c.Args().First())
	}
	return nil
}

// configPath returns the main configuration file.
func (e *env) configPath(c *cli.Context) string {
	if p := c.String("config"); p != "" {
		return p
	}
	if p := e.getenv("SALTCLUSTERD_CONFIG"); p != "" {
		return p
	}
	return config.DefaultPath
}

// openClient finds the socket: flag, environment, configuration, default. A
// configuration that cannot be read (it may hold a secret) or is broken does
// not matter here.
func (e *env) openClient(c *cli.Context) *adminapi.Client {
	path := c.String("socket")
	if path == "" {
		path = e.getenv("SALTCLUSTERD_SOCKET")
	}
	if path == "" {
		cfg, _ := config.Read(e.configPath(c))
		path = cfg.Paths.AdminSocket
	}
	return adminapi.NewClient(path)
}
