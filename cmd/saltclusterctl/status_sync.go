package main

import (
	"fmt"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// syncRows shows what a node that joins or comes back has yet to get, a line for each sort of state.
func syncRows(parts []adminapi.SyncPart, now time.Time) [][]cell {
	var rows [][]cell
	name := "syncing"
	for _, p := range parts {
		if !p.Open() {
			continue
		}
		text := []string{adminapi.SyncText([]adminapi.SyncPart{p})}
		if p.From != "" {
			text = append(text, "from "+clean(p.From))
		}
		if !p.Since.IsZero() {
			text = append(text, "for "+formatAge(now.Sub(p.Since)))
		}
		if p.Error != "" {
			text = append(text, fmt.Sprintf("(%s)", clean(p.Error)))
		}
		rows = append(rows, []cell{{text: name}, cell{text: strings.Join(text, " ")}.withTint(yellow)})
		name = ""
	}
	return rows
}
