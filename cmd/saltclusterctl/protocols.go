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

func runProtocols(c *cli.Context, e *console.Env) error {
	p, err := askProtocols(c, e)
	if err != nil {
		return err
	}
	return e.PrintValue(c, p, func(s *console.Screen) { protocolsScreen(s, p, time.Now()) })
}

func protocolsScreen(s *console.Screen, p adminapi.Protocols, now time.Time) {
	rows, count := make([][]console.Cell, 0, len(p.Minions)+len(p.Unheard)), map[int]int{}
	for _, m := range p.Minions {
		count[m.Version]++
		version, seen := strconv.Itoa(m.Version), "before the last start"
		if m.Latest != 0 && m.Latest != m.Version {
			version += ", now " + strconv.Itoa(m.Latest)
		}
		if !m.Seen.IsZero() {
			seen = console.FormatAge(now.Sub(m.Seen)) + " ago"
		}
		rows = append(rows, []console.Cell{console.Txt(m.ID), {Text: version}, {Text: seen}, console.Txt(m.Node)})
	}
	for _, id := range p.Unheard {
		rows = append(rows, []console.Cell{console.Txt(id), {Text: "?"}, {}, {}})
	}
	s.PrintTable("", []string{"MINION", "VERSION", "SEEN", "NODE"}, rows)
	var parts []string
	for _, v := range slices.Backward(slices.Sorted(maps.Keys(count))) {
		parts = append(parts, fmt.Sprintf("version %d: %s", v, wording.Plural(count[v], "minion")))
	}
	if len(p.Unheard) > 0 {
		parts = append(parts, wording.Plural(len(p.Unheard), "minion")+" without contact yet")
	}
	if len(parts) > 0 {
		s.Line("%s", strings.Join(parts, ", "))
	}
	s.PrintMissing(p.Missing)
}
