package support

import (
	"context"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func NewLogsCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "logs", Usage: "make saltclusterd log more or less, without a restart",
		Subcommands: []*cli.Command{newLogsLevelCommand(e)},
		Action:      console.NoSuchWord("saltclusterctl logs level debug --for 10m", "level"),
	})
}

func newLogsLevelCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "level", ArgsUsage: "[debug|info|warning|error|default]",
		Usage: "show or set how much this node's saltclusterd logs",
		Description: "It lasts until the process ends or is replaced (upgrade, reload); to make it permanent, set the option log_level.\n" +
			"The service manager decides where the log goes: journalctl -u saltclusterd",
		Flags: []cli.Flag{&cli.DurationFlag{Name: "for", Usage: "set it for `TIME`, then return to the configured level",
			DefaultText: "until the process ends"}},
		Action: func(c *cli.Context) error {
			if c.NArg() > 1 {
				return console.Usagef("saltclusterctl logs level debug --for 10m", "logs level takes one level")
			}
			return runLogsLevel(c, e)
		},
	})
}

func runLogsLevel(c *cli.Context, e *console.Env) error {
	level, err := console.AskAdmin(c, e, func(client *adminapi.Client, ctx context.Context) (adminapi.LogLevel, error) {
		name := c.Args().First()
		if name == "" {
			return client.LogLevel(ctx)
		}
		if name == "default" {
			name = ""
		}
		return client.SetLogLevel(ctx, adminapi.SetLogLevelRequest{Level: name, For: c.Duration("for")})
	})
	if err != nil {
		return err
	}
	return e.PrintValue(c, level, func(s *console.Screen) {
		switch {
		case level.Level == level.Configured:
			s.Line("%s", level.Level)
		case level.Until.IsZero():
			s.Line("%s (configured: %s)", level.Level, level.Configured)
		default:
			s.Line("%s, for %s (configured: %s)", level.Level, console.FormatAge(time.Until(level.Until)), level.Configured)
		}
	})
}
