package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

func runProtocols(c *cli.Context, e *env) error {
	p, err := askProtocols(c, e)
	if err != nil {
		return err
	}
	return e.printValue(c, p, func(s *screen) { protocolsScreen(s, p, time.Now()) })
}

func protocolsScreen(s *screen, p adminapi.Protocols, now time.Time) {
	rows, count := make([][]cell, 0, len(p.Minions)+len(p.Unheard)), map[int]int{}
	for _, m := range p.Minions {
		count[m.Version]++
		version, seen := strconv.Itoa(m.Version), "before the last start"
		if m.Latest != 0 && m.Latest != m.Version {
			version += ", now " + strconv.Itoa(m.Latest)
		}
		if !m.Seen.IsZero() {
			seen = formatAge(now.Sub(m.Seen)) + " ago"
		}
		rows = append(rows, []cell{txt(m.ID), {text: version}, {text: seen}, txt(m.Node)})
	}
	for _, id := range p.Unheard {
		rows = append(rows, []cell{txt(id), {text: "?"}, {}, {}})
	}
	s.printTable("", []string{"MINION", "VERSION", "SEEN", "NODE"}, rows)
	var parts []string
	for _, v := range slices.Backward(slices.Sorted(maps.Keys(count))) {
		parts = append(parts, fmt.Sprintf("version %d: %s", v, plural(count[v], "minion")))
	}
	if len(p.Unheard) > 0 {
		parts = append(parts, plural(len(p.Unheard), "minion")+" not heard of yet")
	}
	if len(parts) > 0 {
		s.line("%s", strings.Join(parts, ", "))
	}
	s.printMissing(p.Missing)
}
