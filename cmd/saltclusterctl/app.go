package main

import (
	"context"
	"fmt"
	"strings"

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
	categories := []category{
		{"Set up", []*cli.Command{newSetupCommand(e), newBootstrapCommand(e), newJoinCommand(e), newTokenCommand(e),
			newHAProxyCommand(e)}},
		{"Look", []*cli.Command{newStatusCommand(e), newMembersCommand(e), newTopCommand(e), newMinionsCommand(e),
			newJobsCommand(e), newEventsCommand(e), newRingInfoCommand(e), newWallCommand(e)}},
		{"Maintain", []*cli.Command{newDrainCommand(e), newUndrainCommand(e), newUpgradeCommand(e),
			newTransferCommand(e), newRotateCommand(e), snapshot.NewSnapshotCommand(e), newConfigCommand(e)}},
		{"Data", []*cli.Command{keys.NewKeysCommand(e), roots.NewRootsCommand(e), roots.NewSyncRootsCommand(e),
			newReturnsCommand(e), newVerifyCommand(e)}},
		{"Leave, disaster", []*cli.Command{newRemoveCommand(e), newLeaveCommand(e), snapshot.NewRecoverCommand(e),
			migrate.NewMigrateCommand(e)}},
		{"Support", []*cli.Command{support.NewDoctorCommand(e), support.NewBundleCommand(e),
			support.NewLogsCommand(e), support.NewProfileCommand(e), newCompletionCommand(e), newCompleteCommand(e),
			newVersionCommand(e), newManualCommand(e)}},
	}
	app := &cli.App{
		Name:                  "saltclusterctl",
		Usage:                 "inspect and manage a cluster of salt-masters",
		Description:           "Asks the saltclusterd of this host. Every node knows the whole cluster, even while other nodes are down.",
		Reader:                e.Stdin,
		Writer:                e.Stdout,
		ErrWriter:             e.Stderr,
		HideVersion:           true,
		CustomAppHelpTemplate: helpTemplate(categories) + "\n" + console.ExitCodesHelp,
		ExitErrHandler:        func(*cli.Context, error) {}, // run decides
		OnUsageError:          console.OnUsageError,
	}
	for _, c := range categories {
		for _, command := range c.commands {
			command.Category = c.name
		}
		app.Commands = append(app.Commands, c.commands...)
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

// category is commands under a heading of the help.
type category struct {
	name     string
	commands []*cli.Command
}

// helpTemplate is cli's with the categories in our order, which is that of an operator's work; cli sorts them by name.
func helpTemplate(categories []category) string {
	var list strings.Builder
	for _, c := range append(categories, category{}) { // help itself has none
		fmt.Fprintf(&list, `{{range .VisibleCategories}}{{if eq .Name %q}}{{if .Name}}
   {{.Name}}:{{end}}{{range .VisibleCommands}}
     {{join .Names ", "}}{{"\t"}}{{.Usage}}{{end}}{{end}}{{end}}`, c.name)
	}
	return strings.Replace(cli.AppHelpTemplate, `{{template "visibleCommandCategoryTemplate" .}}`, list.String(), 1)
}
