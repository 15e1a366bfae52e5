package console

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// RefuseEmpty refuses a command line with an empty argument or an empty value of a flag. That is a variable of a script
// that has no value, and must not mean what the command does when nothing is named: as a rule everything.
func RefuseEmpty(args []string) error {
	for i, arg := range args {
		name, value, assigned := strings.Cut(arg, "=")
		isFlag := len(name) > 1 && name[0] == '-'
		switch {
		case arg == "--":
		case isFlag && assigned && value == "":
			return errEmpty(name)
		case arg == "" && i > 0 && len(args[i-1]) > 1 && args[i-1][0] == '-' && args[i-1] != "--":
			return errEmpty("the value of " + args[i-1])
		case arg == "":
			return errEmpty(fmt.Sprintf("argument %d", i+1))
		}
	}
	return nil
}

func errEmpty(what string) error {
	return Usagef("is a variable of the script unset?", "%s is empty; nothing was changed", what)
}

// ArrangeArgs moves flags between command and arguments, where the library wants
// them, so that `join PEER --timeout 1m` and `--out json members` work.
func ArrangeArgs(app *cli.App, args []string) []string {
	_, words, _ := sortOut(args, ValuedFlags(app.Commands))
	if len(words) > 1 && (words[0] == "help" || words[0] == "h") { // also for a verb that another word follows
		return ArrangeArgs(app, append(words[1:], "--help"))
	}
	// Flags of one name may take a value in one command and none in another.
	valued := ValuedFlags(findCommands(app.Commands, words))
	flags, words, rest := sortOut(args, valued)
	n := countNamed(app.Commands, words)
	if n == 0 && len(words) > 0 { // the unknown command is what to talk about, not its flags
		return append([]string{"--"}, words...)
	}
	out := slices.Concat(words[:n], flags)
	if slices.Contains(flags, "--help") || slices.Contains(flags, "-h") { // of the verb, whatever it is about
		return out
	}
	if last := len(flags) - 1; last >= 0 && len(rest) == 0 && valued[strings.TrimLeft(flags[last], "-")] &&
		flags[last][0] == '-' {
		return out // its value is missing, and is not what would come next
	}
	if words = append(words[n:], rest...); len(words) > 0 {
		out = append(append(out, "--"), words...)
	}
	return out
}

// sortOut tells flags, with their values, from words, and from what follows "--".
func sortOut(args []string, valued map[string]bool) (flags, words, rest []string) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return flags, words, args[i+1:]
		case len(arg) < 2 || arg[0] != '-':
			words = append(words, arg)
		default:
			flags = append(flags, arg)
			if valued[strings.TrimLeft(arg, "-")] && i+1 < len(args) {
				i++
				flags = append(flags, args[i])
			}
		}
	}
	return flags, words, nil
}

// findCommands returns the command that the words name, with what is below it; all when they name none.
func findCommands(commands []*cli.Command, words []string) []*cli.Command {
	for _, w := range words {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(w) })
		if i < 0 {
			return commands
		}
		commands = append([]*cli.Command{commands[i]}, commands[i].Subcommands...)
	}
	return commands
}

// countNamed counts the leading words that name a command and its subcommands.
func countNamed(commands []*cli.Command, words []string) int {
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

// ValuedFlags names the flags of all commands that take a value.
func ValuedFlags(commands []*cli.Command) map[string]bool {
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
		for name := range ValuedFlags(c.Subcommands) {
			out[name] = true
		}
	}
	return out
}
