package main

import (
	"fmt"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// returnRows tell how returns are taken, and of each journal that holds something or takes nothing.
func returnRows(r *adminapi.Returns, now time.Time) [][]cell {
	if r == nil {
		return nil
	}
	var rows [][]cell
	label := "returns"
	add := func(text string, tint string) {
		rows = append(rows, []cell{{text: label}, txt(text).in(tint)})
		label = ""
	}
	for _, p := range r.Paths {
		switch {
		case p.Path == adminapi.PathNative && len(rows) == 0:
			add("journaled and written to the job cache here", plain)
		case p.Path != adminapi.PathNative:
			add(p.Command+" goes to the salt-master: "+p.Reason, plain)
		}
	}
	for _, j := range r.Journals {
		if j.State != "ok" {
			add(fmt.Sprintf("journal %s takes nothing (%s): %s", j.Name, j.State, j.Error), red)
		}
		for _, w := range j.Waiting {
			if w.Records > 0 {
				add(waitingText(j, w, now), plain)
			}
		}
	}
	if r.Unanswered > 0 {
		add(fmt.Sprintf("%s not answered by the salt-master, put aside for %s: saltclusterctl returns list", plural(r.Unanswered, "return"),
			age(now.Sub(r.UnansweredSince))), yellow)
	}
	return rows
}

func waitingText(j adminapi.Journal, w adminapi.Waiting, now time.Time) string {
	text := fmt.Sprintf("journal %s: %s for %s", j.Name, plural(int(w.Records), "return"), w.Consumer)
	if !w.Oldest.IsZero() {
		text += ", the oldest for " + age(now.Sub(w.Oldest))
	}
	if w.Error != "" {
		text += ": " + w.Error
	}
	return text
}
