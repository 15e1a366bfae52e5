package main

import (
	"fmt"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

// returnRows tell how returns are taken, and of each journal that holds something or takes nothing.
func returnRows(r *adminapi.Returns, now time.Time) [][]console.Cell {
	if r == nil {
		return nil
	}
	var rows [][]console.Cell
	label := "returns"
	add := func(text string, tint string) {
		rows = append(rows, []console.Cell{{Text: label}, console.Txt(text).WithTint(tint)})
		label = ""
	}
	for i, p := range r.Paths {
		switch {
		case p.Path == adminapi.PathNative && len(rows) == 0:
			add("journaled and written to the job cache here", console.Plain)
		case p.Path != adminapi.PathNative && (i == 0 || r.Paths[i-1].Reason != p.Reason):
			add(mastersOwn(r.Paths[i:]), console.Plain)
		}
	}
	for _, j := range r.Journals {
		if j.State != "ok" {
			add(fmt.Sprintf("journal %s accepts no returns (%s): %s", j.Name, j.State, j.Error), console.Red)
		}
		for _, w := range j.Waiting {
			if w.Records > 0 {
				add(waitingText(j, w, now), console.Plain)
			}
		}
	}
	if r.Unanswered > 0 {
		add(fmt.Sprintf("%s not answered by the salt-master, put aside for %s: saltclusterctl returns list",
			wording.Plural(r.Unanswered, "return"),
			console.FormatAge(now.Sub(r.UnansweredSince))), console.Yellow)
	}
	return rows
}

// mastersOwn says what of paths goes to the salt-master for the same reason as the first.
func mastersOwn(paths []adminapi.ReturnPath) string {
	reason, verb := paths[0].Reason, " goes"
	var commands []string
	for _, p := range paths {
		if p.Path == adminapi.PathNative || p.Reason != reason {
			break
		}
		commands = append(commands, p.Command)
	}
	if len(commands) > 1 {
		verb = " go"
	}
	return strings.Join(commands, ", ") + verb + " to the salt-master: " + reason
}

func waitingText(j adminapi.Journal, w adminapi.Waiting, now time.Time) string {
	text := fmt.Sprintf("journal %s: %s for %s", j.Name, wording.Plural(int(w.Records), "return"), w.Consumer)
	if !w.Oldest.IsZero() {
		text += ", the oldest for " + console.FormatAge(now.Sub(w.Oldest))
	}
	if w.Error != "" {
		text += ": " + w.Error
	}
	return text
}
