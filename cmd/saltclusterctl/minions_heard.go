package main

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fnmatch"
)

// heard is what minions list shows of the states connected and lost.
type heard struct {
	Within  string         `json:"within"`
	Count   map[string]int `json:"count"`   // connected, lost
	Minions []heardMinion  `json:"minions"` // sorted by id
	Missing []string       `json:"missing,omitempty"`
}

// heardMinion is an accepted minion and when a node has heard of it last.
type heardMinion struct {
	ID      string    `json:"id"`
	Seen    time.Time `json:"seen,omitzero"` // zero: no node remembers when
	Node    string    `json:"node,omitempty"`
	Address string    `json:"address,omitempty"`
}

// askProtocols asks what the nodes have heard of the minions that the argument, a pattern, means.
func askProtocols(c *cli.Context, e *console.Env) (adminapi.Protocols, error) {
	var pattern *regexp.Regexp
	if glob := c.Args().First(); glob != "" {
		var err error
		if pattern, err = fnmatch.Compile(glob); err != nil {
			return adminapi.Protocols{}, console.Usagef("saltclusterctl minions list 'web*'", "%v", err)
		}
	}
	p, err := console.AskAdmin(c, e, (*adminapi.Client).Protocols)
	if err != nil || pattern == nil {
		return p, err
	}
	p.Minions = slices.DeleteFunc(p.Minions, func(m adminapi.MinionProtocol) bool { return !pattern.MatchString(m.ID) })
	p.Unheard = slices.DeleteFunc(p.Unheard, func(id string) bool { return !pattern.MatchString(id) })
	return p, nil
}

func runHeard(c *cli.Context, e *console.Env, lost bool) error {
	p, err := askProtocols(c, e)
	if err != nil {
		return err
	}
	h := sortHeard(p, lost, c.Duration("within"), time.Now())
	return e.PrintValue(c, h, func(s *console.Screen) { heardScreen(s, h, time.Now()) })
}

// sortHeard sorts the accepted minions into those that were heard of lately and the others.
func sortHeard(p adminapi.Protocols, lost bool, within time.Duration, now time.Time) heard {
	h := heard{Within: console.FormatAge(within), Minions: []heardMinion{}, Missing: p.Missing,
		Count: map[string]int{"connected": 0, "lost": 0}}
	add := func(m heardMinion) {
		gone, word := m.Seen.IsZero() || now.Sub(m.Seen) > within, "connected"
		if gone {
			word = "lost"
		}
		h.Count[word]++
		if gone == lost {
			h.Minions = append(h.Minions, m)
		}
	}
	for _, m := range p.Minions {
		add(heardMinion{m.ID, m.Seen, m.Node, m.Address})
	}
	for _, id := range p.Unheard {
		add(heardMinion{ID: id})
	}
	slices.SortFunc(h.Minions, func(a, b heardMinion) int { return cmp.Compare(a.ID, b.ID) })
	return h
}

func heardScreen(s *console.Screen, h heard, now time.Time) {
	rows := make([][]console.Cell, 0, len(h.Minions))
	for _, m := range h.Minions {
		rows = append(rows, []console.Cell{console.Txt(m.ID), console.Txt(heardText(m.Seen, now)), console.Txt(m.Node),
			console.Txt(m.Address)})
	}
	s.PrintTable("", []string{"MINION", "LAST CONTACT", "NODE", "ADDRESS"}, rows)
	s.Line("%d with contact within %s, %d without", h.Count["connected"], h.Within, h.Count["lost"])
	s.PrintMissing(h.Missing)
}

func heardText(seen, now time.Time) string {
	if seen.IsZero() {
		return "none yet"
	}
	return console.FormatAge(now.Sub(seen)) + " ago"
}
