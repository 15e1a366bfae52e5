package console

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/config"
)

// CompleteCommand completes a command with the flags and the error handling all have.
func CompleteCommand(c *cli.Command) *cli.Command {
	c.OnUsageError = OnUsageError
	c.HideHelpCommand = true
	if len(c.Subcommands) == 0 {
		c.CustomHelpTemplate = cli.CommandHelpTemplate + "\n" + ExitCodesHelp
	}
	if !HasFlag(c, "timeout") {
		c.Flags = append(c.Flags, &cli.DurationFlag{Name: "timeout", Value: AskTimeout, Usage: "give up after `TIME`"})
	}
	c.Flags = append(c.Flags,
		&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Value: "table",
			Usage: "`FORMAT` of the output: " + strings.Join(Formats, ", ")},
		&cli.BoolFlag{Name: "no-color", Aliases: []string{"no-colour"},
			Usage: "no colours, not even on a terminal; NO_COLOR does the same"},
		&cli.StringFlag{Name: "socket",
			Usage: "admin socket (`PATH`) of saltclusterd; default: $SALTCLUSTER_SOCKET, then its configuration"},
		&cli.StringFlag{Name: "config", Usage: "main configuration file (`PATH`); default: $SALTCLUSTER_CONFIG, then " +
			config.DefaultPath},
	)
	if run := c.Action; run != nil {
		c.Action = func(c *cli.Context) error {
			if err := checkFlags(c); err != nil {
				return err
			}
			return run(c)
		}
	}
	return c
}

// VisitCommands calls f for all commands and their subcommands.
func VisitCommands(commands []*cli.Command, f func(*cli.Command)) {
	for _, c := range commands {
		f(c)
		VisitCommands(c.Subcommands, f)
	}
}

// HideFlags keeps flags of earlier builds out of help and completion.
func HideFlags(flags ...cli.Flag) []cli.Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *cli.BoolFlag:
			f.Hidden = true
		case *cli.DurationFlag:
			f.Hidden = true
		}
	}
	return flags
}

// HasFlag says whether a command has a flag.
func HasFlag(c *cli.Command, name string) bool {
	return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
}

// OnUsageError turns a mistake in flags into an error that names them.
func OnUsageError(c *cli.Context, err error, _ bool) error {
	name, flags := "saltclusterctl", []cli.Flag(nil)
	if c.Command != nil && strings.HasPrefix(c.Command.HelpName, name+" ") {
		name, flags = c.Command.HelpName, c.Command.Flags // with the verb that a verb is part of
	}
	hint := name + " --help"
	if strings.HasSuffix(err.Error(), ": -json") {
		hint = "--out json prints JSON"
	}
	return Usagef(hint, "%s", FlagMistake(err.Error(), flags))
}

// NoSuchWord is what a verb does that must be followed by one of words, and was not.
func NoSuchWord(hint, words string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if !c.Args().Present() {
			return Usagef(hint, "%s needs a subcommand: %s", commandName(c), words)
		}
		return Usagef(hint, "unknown subcommand %q of %s: use %s", c.Args().First(), commandName(c), words)
	}
}

// WithoutArgs runs a command that takes no positional arguments.
func WithoutArgs(e *Env, run func(*cli.Context, *Env) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := NoArgs(c); err != nil {
			return err
		}
		return run(c, e)
	}
}

// WithOneArg runs a command that takes one argument, and refuses another number of them with a message and a hint.
func WithOneArg(e *Env, hint, message string, run func(*cli.Context, *Env) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() != 1 {
			return Usagef(hint, "%s", message)
		}
		return run(c, e)
	}
}

// NoArgs refuses positional arguments.
func NoArgs(c *cli.Context) error {
	if c.Args().Present() {
		return Usagef(c.Command.HelpName+" --help", "%s takes no argument, but got %q", commandName(c), c.Args().First())
	}
	return nil
}

// commandName is what is typed after saltclusterctl for a command.
func commandName(c *cli.Context) string {
	return strings.TrimPrefix(c.Command.HelpName, "saltclusterctl ")
}
