package main

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// arrange moves flags between command and arguments, where the library wants
// them, so that `join PEER --timeout 1m` and `--out json members` work.
func arrange(app *cli.App, args []string) []string {
	valued := valuedFlags(app.Commands)
	var flags, words, rest []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			rest = args[i+1:]
			i = len(args)
		case len(arg) < 2 || arg[0] != '-':
			words = append(words, arg)
		default:
			flags = append(flags, arg)
			name := strings.TrimLeft(arg, "-")
			if valued[name] && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		}
	}
	n := depth(app.Commands, words)
	if n == 0 && len(words) > 0 { // the unknown command is what to talk about, not its flags
		return append([]string{"--"}, words...)
	}
	out := slices.Concat(words[:n], flags)
	if words = append(words[n:], rest...); len(words) > 0 {
		out = append(append(out, "--"), words...)
	}
	return out
}

// depth counts the leading words that name a command and its subcommands.
func depth(commands []*cli.Command, words []string) int {
	for n, w := range words {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(w) })
		if i < 0 {
			if n == 0 && (w == "help" || w == "h") {
				return 1
			}
			return n
		}
		commands = commands[i].Subcommands
	}
	return len(words)
}

// valuedFlags names the flags of all commands that take a value.
func valuedFlags(commands []*cli.Command) map[string]bool {
	out := map[string]bool{}
	for _, c := range commands {
		for _, f := range c.Flags {
			if _, isBool := f.(*cli.BoolFlag); isBool {
				continue
			}
			for _, name := range f.Names() {
				out[name] = true
			}
		}
		for name := range valuedFlags(c.Subcommands) {
			out[name] = true
		}
	}
	return out
}
