package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

func newWallCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "wall",
		Usage: "show the rules for requests of minions to this node, and how often each one matched",
		Description: "Rules are set with cluster_wall: {RULE: off|log|enforce}. Fixed rules are always enforced. The counts begin when saltclusterd\n" +
			"starts on this node; its log has the details (messages request refused and request would be refused).",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "explain", Usage: "show what each rule allows"},
		},
		Action: console.WithoutArgs(e, func(c *cli.Context, e *console.Env) error {
			return console.ShowAnswer(c, e, (*adminapi.Client).Wall,
				func(s *console.Screen, w adminapi.Wall) { wallScreen(s, w, c.Bool("explain"), time.Now()) })
		}),
	})
}

func wallScreen(s *console.Screen, w adminapi.Wall, explain bool, now time.Time) {
	if explain {
		for _, r := range w.Rules {
			s.Line("%s (%s): %s", s.Paint(console.Bold, console.Clean(r.Name)), wallMode(r).Text, console.Clean(r.Doc))
		}
		return
	}
	rows := make([][]console.Cell, 0, len(w.Rules))
	for _, r := range w.Rules {
		last := ""
		if !r.Last.IsZero() {
			last = console.FormatAge(now.Sub(r.Last)) + " ago"
		}
		rows = append(rows, []console.Cell{console.Txt(r.Name), wallMode(r), numberCell(r.Refused), numberCell(r.Logged),
			{Text: last},
			{Text: console.Clean(r.Minion)}})
	}
	s.PrintTable("", []string{"RULE", "MODE", "REFUSED", "LOGGED", "LAST", "MINION"}, rows)
}

func numberCell(n uint64) console.Cell {
	return console.Cell{Text: strconv.FormatUint(n, 10), Right: true}
}

func wallMode(r adminapi.WallRule) console.Cell {
	switch {
	case r.Fixed:
		return console.Txt("fixed")
	case r.Mode != "enforce":
		return console.Txt(r.Mode).WithTint(console.Yellow)
	}
	return console.Txt(r.Mode)
}

// wallRow is the wall in a node's status.
func wallRow(w *adminapi.WallLine) [][]console.Cell {
	if w == nil {
		return nil
	}
	text := fmt.Sprintf("%d rules enforced, %d log, %d off", w.Enforced, w.Log, w.Off)
	if w.Refused > 0 {
		text += fmt.Sprintf("  %d refused", w.Refused)
	}
	if w.Logged > 0 {
		text += fmt.Sprintf("  %d logged", w.Logged)
	}
	return [][]console.Cell{{{Text: "wall"}, {Text: text}}}
}
