package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newVerifyCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "verify",
		Usage: "compare the data of the nodes: keys, grains, pillars, mines, eauth tokens, roots, jobs, and the masters' signing keys",
		Description: "Every node reads what its salt-master would read and sends hashes of it; minion keys are also compared with the cluster's decisions.\n" +
			"Differences are checked again after a moment, so changes on their way do not count, nor do entries that a master's own cleanup\n" +
			"removed. Exit code 10: there are differences; 11: there are none, but not all nodes could be asked.",
		Flags: []cli.Flag{
			&cli.DurationFlag{Name: "timeout", Value: 5 * time.Minute, Usage: "give up after `TIME`; 0: never"},
		},
		Action: console.WithoutArgs(e, runVerify),
	})
}

func runVerify(c *cli.Context, e *console.Env) error {
	v, err := console.AskLong(c, e, (*adminapi.Client).Verify,
		"every node reads its data; differences are checked again")
	if err != nil {
		return err
	}
	if err := e.PrintValue(c, v, func(s *console.Screen) { verifyScreen(s, v) }); err != nil {
		return err
	}
	switch {
	case !v.Same():
		return console.SilentError(console.ExitProblems)
	case !v.Complete():
		return console.SilentError(console.ExitIncomplete)
	}
	return nil
}

func verifyScreen(s *console.Screen, v adminapi.Verification) {
	rows := make([][]console.Cell, 0, len(v.Sections))
	for _, sec := range v.Sections {
		state := console.Cell{Text: "same", Tint: console.Green}
		switch n := len(sec.Differences) + sec.More; {
		case n > 0:
			state = console.Cell{Text: wording.Plural(n, "difference"), Tint: console.Red}
		case len(sec.Missing) > 0:
			state = console.Cell{Text: "same without " + strings.Join(slices.Sorted(maps.Keys(sec.Missing)), ", "), Tint: console.Yellow}
		case sec.Moving > 0:
			state = console.Cell{Text: fmt.Sprintf("%d still moving", sec.Moving), Tint: console.Yellow}
		}
		rows = append(rows, []console.Cell{console.Txt(sec.Name), {Text: strconv.Itoa(sec.Items), Right: true}, state})
	}
	s.PrintTable("", []string{"WHAT", "ITEMS", ""}, rows)
	printNotes(s, v, func(sec adminapi.VerifiedSection) map[string]string { return sec.Missing }, "no answer from")
	printNotes(s, v, func(sec adminapi.VerifiedSection) map[string]string { return sec.Off }, "not kept on")
	for _, sec := range v.Sections {
		for _, d := range sec.Differences {
			s.Line("%s %s: %s", sec.Name, console.Clean(d.Item), console.Clean(differenceText(d)))
		}
		if sec.More > 0 {
			s.Line("%s: %d more", sec.Name, sec.More)
		}
	}
}

// printNotes prints each reason of a node once, with the sections it is about.
func printNotes(s *console.Screen, v adminapi.Verification, of func(adminapi.VerifiedSection) map[string]string,
	what string) {
	about := map[[2]string][]string{}
	for _, sec := range v.Sections {
		for node, reason := range of(sec) {
			if node == adminapi.Decided { // of roots without any edit yet
				continue
			}
			about[[2]string{node, reason}] = append(about[[2]string{node, reason}], sec.Name)
		}
	}
	keys := slices.SortedFunc(maps.Keys(about), func(a, b [2]string) int { return strings.Compare(a[0]+a[1], b[0]+b[1]) })
	for _, key := range keys {
		s.Line("%s", s.Paint(console.Yellow, console.Clean(fmt.Sprintf("%s %s (%s): %s", what, key[0], strings.Join(about[key], ", "),
			key[1]))))
	}
}

// differenceText puts nodes that have the same together.
func differenceText(d adminapi.VerifyDifference) string {
	nodes := map[string][]string{}
	for _, n := range slices.Sorted(maps.Keys(d.Nodes)) {
		nodes[d.Nodes[n]] = append(nodes[d.Nodes[n]], n)
	}
	var out []string
	for text, who := range nodes {
		if text == "" {
			text = "nothing"
		}
		out = append(out, strings.Join(who, " ")+" "+text)
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}
