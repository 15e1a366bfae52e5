package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

func newConfigCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:            "config",
		Usage:           "check and show saltclusterd's options",
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Subcommands: []*cli.Command{newConfigCheckCommand(e), newConfigShowCommand(e), newConfigDiffCommand(e),
			newConfigDefaultCommand(e)},
		Action: func(c *cli.Context) error {
			return noSuchWord(c, "saltclusterctl config --help", "check, show, diff or default")
		},
	}
}

func newConfigCheckCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "check",
		Usage: "read the configuration as saltclusterd would and list every mistake; exit code 1 when there is one",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runConfigCheck(c, e)
		},
	})
}

// checked is what config check shows.
type checked struct {
	OK       bool             `json:"ok"`
	Files    []string         `json:"files"`
	Findings []config.Finding `json:"findings"`
}

func runConfigCheck(c *cli.Context, e *env) error {
	cfg, err := config.Load(e.configPath(c))
	result := checked{Files: cfg.Files(), Findings: config.Findings{}}
	if f, ok := errors.AsType[config.Findings](err); ok {
		result.Findings = f
	}
	result.Findings = append(result.Findings, cfg.Missing()...)
	result.OK = len(result.Findings) == 0
	err = e.printValue(c, result, func(s *screen) {
		for _, f := range result.Findings {
			s.line("%s", clean(f.String()))
		}
		if result.OK {
			s.line("ok: %s", plural(len(result.Files), "file"))
			return
		}
		s.line("%s", s.paint(red, plural(len(result.Findings), "mistake")))
	})
	if err == nil && !result.OK {
		return &silentError{exitError}
	}
	return err
}

func newConfigShowCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "show",
		Usage: "show every option, its value and where it comes from",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "running", Aliases: []string{"effective"},
				Usage: "ask the running saltclusterd instead of reading the files"},
			&cli.BoolFlag{Name: "changed", Usage: "only what is not the default"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runConfigShow(c, e)
		},
	})
}

func runConfigShow(c *cli.Context, e *env) error {
	shown, err := e.readOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("changed") {
		shown.Options = slices.DeleteFunc(shown.Options, func(o adminapi.ConfigOption) bool { return o.Source == "default" })
	}
	return e.printValue(c, shown, func(s *screen) {
		rows := make([][]cell, 0, len(shown.Options))
		for _, o := range shown.Options {
			rows = append(rows, []cell{txt(o.Name), {text: clean(config.Flow(wholeNumber(o.Value)))}, {text: clean(o.Source)}})
		}
		s.printTable("", []string{"OPTION", "VALUE", "SOURCE"}, rows)
	})
}

func (e *env) readOptions(c *cli.Context) (adminapi.Config, error) {
	if c.Bool("running") {
		return askAdmin(c, e, (*adminapi.Client).Config)
	}
	cfg, err := config.Read(e.configPath(c))
	if err != nil {
		return adminapi.Config{}, fmt.Errorf("the configuration has mistakes; saltclusterctl config check lists them all: %w",
			err)
	}
	return cfg.Show(), nil
}

func newConfigDefaultCommand(e *env) *cli.Command {
	return &cli.Command{
		Name:            "default",
		Usage:           "print the commented default configuration file",
		HideHelpCommand: true,
		OnUsageError:    onUsageError,
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			_, err := e.stdout.Write(config.DefaultFile())
			return err
		},
	}
}
