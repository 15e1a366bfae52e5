package main

import (
	"fmt"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// syncRows shows what a node that joins or comes back has yet to get, a line for each sort of state.
func syncRows(parts []adminapi.SyncPart, now time.Time) [][]console.Cell {
	var rows [][]console.Cell
	name := "syncing"
	for _, p := range parts {
		if !p.Open() {
			continue
		}
		text := []string{adminapi.SyncText([]adminapi.SyncPart{p})}
		if p.From != "" {
			text = append(text, "from "+console.Clean(p.From))
		}
		if !p.Since.IsZero() {
			text = append(text, "for "+console.FormatAge(now.Sub(p.Since)))
		}
		if p.Error != "" {
			text = append(text, fmt.Sprintf("(%s)", console.Clean(p.Error)))
		}
		rows = append(rows, []console.Cell{{Text: name}, console.Cell{Text: strings.Join(text, " ")}.WithTint(console.Yellow)})
		name = ""
	}
	return rows
}
