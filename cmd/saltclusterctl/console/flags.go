package console

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/config"
)

// What the library says of flags.
var (
	flagUnknown  = regexp.MustCompile(`^flag provided but not defined: -+(.*)$`)
	flagNoValue  = regexp.MustCompile(`^flag needs an argument: -+(.*)$`)
	flagBadValue = regexp.MustCompile(`^invalid (?:boolean )?value (".*") for (?:flag )?-+(\S+): `)
)

// FlagMistake is what the library says of a flag as a sentence that says what to type instead.
func FlagMistake(said string, flags []cli.Flag) string {
	if m := flagUnknown.FindStringSubmatch(said); m != nil {
		var names []string
		for _, f := range flags {
			names = append(names, f.Names()...)
		}
		if near := config.Suggest(m[1], names); near != "" {
			return fmt.Sprintf("unknown flag %s (did you mean %s?)", withDashes(m[1]), withDashes(near))
		}
		return "unknown flag " + withDashes(m[1])
	}
	if m := flagNoValue.FindStringSubmatch(said); m != nil {
		return withDashes(m[1]) + " needs a value" + valueKind(flags, m[1])
	}
	if m := flagBadValue.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("invalid %s %s%s", withDashes(m[2]), m[1], valueKind(flags, m[2]))
	}
	return said
}

// valueKind says what kind of value a flag takes.
func valueKind(flags []cli.Flag, name string) string {
	i := slices.IndexFunc(flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	if i < 0 {
		return ""
	}
	switch f := flags[i].(type) {
	case *cli.DurationFlag:
		return ": add a unit, for example 30s, 10m or 2h"
	case *cli.IntFlag:
		return ": a whole number is needed"
	case *cli.BoolFlag:
		return ": use true or false; without a value it is true"
	case cli.DocGenerationFlag:
		placeholder, _ := UnquoteUsage(f)
		return ": " + placeholder
	}
	return ""
}

func withDashes(name string) string {
	return strings.Repeat("-", min(len(name), 2)) + name
}

// UnquoteUsage returns what stands for a flag's value, and the usage without the backquotes around it.
func UnquoteUsage(f cli.DocGenerationFlag) (placeholder, usage string) {
	before, rest, ok := strings.Cut(f.GetUsage(), "`")
	name, after, closed := strings.Cut(rest, "`")
	switch {
	case ok && closed:
		return name, before + name + after
	case f.TakesValue():
		return "VALUE", f.GetUsage()
	}
	return "", f.GetUsage()
}
