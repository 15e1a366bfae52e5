package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func newWallCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "wall",
		Usage: "show the rules for what minions may ask of this node, and what they have found",
		Description: "Rules are set with cluster_wall: {RULE: off|log|enforce}. Fixed ones are always enforced. The counts are of findings\n" +
			"since this node's saltclusterd was started; its log says more (\"request refused\", \"request would be refused\").",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "explain", Usage: "say what each rule lets through"},
		},
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			w, err := askAdmin(c, e, (*adminapi.Client).Wall)
			if err != nil {
				return err
			}
			return e.printValue(c, w, func(s *screen) { wallScreen(s, w, c.Bool("explain"), time.Now()) })
		},
	})
}

func wallScreen(s *screen, w adminapi.Wall, explain bool, now time.Time) {
	if explain {
		for _, r := range w.Rules {
			s.line("%s (%s): %s", s.paint(bold, clean(r.Name)), wallMode(r).text, clean(r.Doc))
		}
		return
	}
	rows := make([][]cell, 0, len(w.Rules))
	for _, r := range w.Rules {
		last := ""
		if !r.Last.IsZero() {
			last = formatAge(now.Sub(r.Last)) + " ago"
		}
		rows = append(rows, []cell{txt(r.Name), wallMode(r), numberCell(r.Refused), numberCell(r.Logged), {text: last},
			{text: clean(r.Minion)}})
	}
	s.printTable("", []string{"RULE", "MODE", "REFUSED", "LOGGED", "LAST", "MINION"}, rows)
}

func numberCell(n uint64) cell { return cell{text: strconv.FormatUint(n, 10), right: true} }

func wallMode(r adminapi.WallRule) cell {
	switch {
	case r.Fixed:
		return txt("fixed")
	case r.Mode != "enforce":
		return txt(r.Mode).withTint(yellow)
	}
	return txt(r.Mode)
}

// wallRow is the wall in a node's status.
func wallRow(w *adminapi.WallLine) [][]cell {
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
	return [][]cell{{{text: "wall"}, {text: text}}}
}
