package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

func newConfigDiffCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "diff",
		Usage: "compare the files with the configuration of the running saltclusterd",
		Description: "Differences take effect with saltclusterctl upgrade (or systemctl reload saltclusterd). Exit code 10: there are differences. For\n" +
			"secrets only whether they are set can be compared.",
		Action: console.WithoutArgs(e, runConfigDiff),
	})
}

// differing is an option that is not in effect as it is written.
type differing struct {
	Name    string `json:"name"`
	Running any    `json:"running"`
	Files   any    `json:"files"`
	Source  string `json:"source"` // of the value in the files
}

func runConfigDiff(c *cli.Context, e *console.Env) error {
	running, err := console.AskAdmin(c, e, (*adminapi.Client).Config)
	if err != nil {
		return err
	}
	cfg, err := config.Read(e.ConfigPath(c))
	if err != nil {
		return fmt.Errorf("the configuration has errors, so saltclusterd would not start with it; saltclusterctl config check lists them all: %w", err)
	}
	diff := compareConfigs(running, cfg.Show())
	err = e.PrintValue(c, diff, func(s *console.Screen) {
		if len(diff) == 0 {
			s.Line("%s", s.Paint(console.Green, "saltclusterd runs with the options in the files"))
			return
		}
		rows := make([][]console.Cell, 0, len(diff))
		for _, d := range diff {
			rows = append(rows, []console.Cell{console.Txt(d.Name), {Text: console.Clean(config.Flow(d.Running))},
				{Text: console.Clean(config.Flow(d.Files))},
				console.Txt(d.Source)})
		}
		s.PrintTable("", []string{"OPTION", "RUNNING", "FILES", "SOURCE"}, rows)
		s.Line("saltclusterctl upgrade makes the files take effect")
	})
	if err == nil && len(diff) > 0 {
		return console.SilentError(console.ExitProblems)
	}
	return err
}

// compareConfigs goes by the way values are written: one side has been through JSON. The secret is left out: it may
// come from a place that only the daemon can read.
func compareConfigs(running, files adminapi.Config) []differing {
	out := []differing{}
	was := support.OptionsOf(running)
	for _, o := range files.Options {
		before, known := was[o.Name]
		before = wholeNumber(before)
		switch {
		case o.Name == "cluster_secret", known && config.Flow(before) == config.Flow(o.Value):
			continue
		case !known && o.Source == "default": // this tool is newer than the daemon
			continue
		case !known:
			before = "(not known)"
		}
		out = append(out, differing{o.Name, before, o.Value, o.Source})
	}
	return out
}

// wholeNumber gives a number of JSON its integer back: YAML would write a million as 1e+06.
func wholeNumber(v any) any {
	if f, ok := v.(float64); ok && f == float64(int64(f)) {
		return int64(f)
	}
	return v
}
