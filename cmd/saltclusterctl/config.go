package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newConfigCommand(e *console.Env) *cli.Command {
	return &cli.Command{
		Name:            "config",
		Usage:           "check and show saltclusterd's options",
		HideHelpCommand: true,
		OnUsageError:    console.OnUsageError,
		Subcommands: []*cli.Command{newConfigCheckCommand(e), newConfigShowCommand(e), newConfigDiffCommand(e),
			newConfigDefaultCommand(e)},
		Action: console.NoSuchWord("saltclusterctl config --help", "check, show, diff or default"),
	}
}

func newConfigCheckCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:   "check",
		Usage:  "read the configuration as saltclusterd would and list every error; exit code 10 when there is one",
		Action: console.WithoutArgs(e, runConfigCheck),
	})
}

// checked is what config check shows.
type checked struct {
	OK       bool             `json:"ok"`
	Files    []string         `json:"files"`
	Findings []config.Finding `json:"findings"`
}

func runConfigCheck(c *cli.Context, e *console.Env) error {
	cfg, err := config.Load(e.ConfigPath(c))
	result := checked{Files: cfg.Files(), Findings: config.Findings{}}
	if f, ok := errors.AsType[config.Findings](err); ok {
		result.Findings = f
	}
	result.Findings = append(result.Findings, cfg.Missing()...)
	result.OK = len(result.Findings) == 0
	err = e.PrintValue(c, result, func(s *console.Screen) {
		for _, f := range result.Findings {
			s.Line("%s", console.Clean(f.String()))
		}
		if result.OK {
			s.Line("ok: %s", wording.Plural(len(result.Files), "file"))
			return
		}
		s.Line("%s", s.Paint(console.Red, wording.Plural(len(result.Findings), "error")))
	})
	if err == nil && !result.OK {
		return console.SilentError(console.ExitProblems)
	}
	return err
}

func newConfigShowCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "show",
		Usage: "show every option, its value and where it comes from",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "running", Aliases: []string{"effective"},
				Usage: "ask the running saltclusterd instead of reading the files"},
			&cli.BoolFlag{Name: "changed", Usage: "only options that differ from their default"},
		},
		Action: console.WithoutArgs(e, runConfigShow),
	})
}

func runConfigShow(c *cli.Context, e *console.Env) error {
	shown, err := readOptions(e, c)
	if err != nil {
		return err
	}
	if c.Bool("changed") {
		shown.Options = slices.DeleteFunc(shown.Options, func(o adminapi.ConfigOption) bool { return o.Source == "default" })
	}
	return e.PrintValue(c, shown, func(s *console.Screen) {
		rows := make([][]console.Cell, 0, len(shown.Options))
		for _, o := range shown.Options {
			rows = append(rows, []console.Cell{console.Txt(o.Name), {Text: console.Clean(config.Flow(wholeNumber(o.Value)))},
				{Text: console.Clean(o.Source)}})
		}
		s.PrintTable("", []string{"OPTION", "VALUE", "SOURCE"}, rows)
	})
}

func readOptions(e *console.Env, c *cli.Context) (adminapi.Config, error) {
	if c.Bool("running") {
		return console.AskAdmin(c, e, (*adminapi.Client).Config)
	}
	cfg, err := config.Read(e.ConfigPath(c))
	if err != nil {
		return adminapi.Config{}, fmt.Errorf("the configuration has errors; saltclusterctl config check lists them all: %w",
			err)
	}
	return cfg.Show(), nil
}

func newConfigDefaultCommand(e *console.Env) *cli.Command {
	return &cli.Command{
		Name:            "default",
		Usage:           "print the commented default configuration file",
		HideHelpCommand: true,
		OnUsageError:    console.OnUsageError,
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			_, err := e.Stdout.Write(config.DefaultFile())
			return err
		}),
	}
}
