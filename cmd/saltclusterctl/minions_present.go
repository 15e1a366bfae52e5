package main

import (
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fnmatch"
)

// presentMinions is what minions list shows of the states present and absent.
type presentMinions struct {
	Count   map[string]int           `json:"count"`   // present, absent, in doubt (among those present)
	Minions []adminapi.PresentMinion `json:"minions"` // sorted by id
	Missing []string                 `json:"missing,omitempty"`
}

func runPresence(c *cli.Context, e *console.Env, absent bool) error {
	match := func(string) bool { return true }
	if glob := c.Args().First(); glob != "" {
		pattern, err := fnmatch.Compile(glob)
		if err != nil {
			return console.Usagef("saltclusterctl minions list 'web*'", "%v", err)
		}
		match = pattern.MatchString
	}
	p, err := console.AskAdmin(c, e, (*adminapi.Client).Presence)
	if err != nil {
		return err
	}
	out := filterPresent(p, absent, match)
	return e.PrintValue(c, out, func(s *console.Screen) { presenceScreen(s, out, absent, time.Now()) })
}

func filterPresent(p adminapi.Presence, absent bool, match func(id string) bool) presentMinions {
	others := func(m adminapi.PresentMinion) bool { return !match(m.ID) }
	p.Present, p.Absent = slices.DeleteFunc(p.Present, others), slices.DeleteFunc(p.Absent, others)
	out := presentMinions{Minions: p.Present, Missing: p.Missing,
		Count: map[string]int{"present": len(p.Present), "absent": len(p.Absent), "doubt": 0}}
	for _, m := range p.Present {
		if m.Doubt {
			out.Count["doubt"]++
		}
	}
	if absent {
		out.Minions = p.Absent
	}
	return out
}

func presenceScreen(s *console.Screen, out presentMinions, absent bool, now time.Time) {
	rows := make([][]console.Cell, 0, len(out.Minions))
	for _, m := range out.Minions {
		id := console.Txt(m.ID)
		if m.Doubt {
			id = console.Cell{Text: console.Clean(m.ID) + " ?", Tint: console.Yellow}
		}
		rows = append(rows, []console.Cell{id, console.Txt(m.Node), console.Txt(m.Address),
			console.Txt(heardText(m.Seen, now))})
	}
	s.PrintTable("", []string{"MINION", "NODE", "ADDRESS", "LAST CONTACT"}, rows)
	s.Line("%d present, %d absent", out.Count["present"], out.Count["absent"])
	if n := out.Count["doubt"]; n > 0 && !absent {
		s.Line("%s", s.Paint(console.Yellow, "presence of "+wording.Plural(n, "minion")+
			" is uncertain (?): the address is shared with minions that are gone; to ask them: salt-run cluster.present ping=True"))
	}
	s.PrintMissing(out.Missing)
}
