package main

import (
	"fmt"
	"strings"

	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/sidecar/adminapi"
)

// mergeList is how many new keys are listed without --all.
const mergeList = 20

func mergeScreen(s *screen, out merged, all bool) {
	for i, src := range out.Sources {
		end := ""
		if out.Cluster == "" && i == 0 {
			end = "; it stands for the cluster, which is not there yet"
		}
		s.line("%s: %s%s", src.text, countsText(src.Counts), end)
	}
	head := []string{"MINION"}
	for _, name := range out.names {
		head = append(head, strings.ToUpper(clean(name)))
	}
	head = append(head, "BECOMES")
	var rows [][]cell
	skipped := 0
	for _, r := range out.Rows {
		if r.Kind == keyset.New && out.Counts[keyset.New] > mergeList && !all {
			skipped++
			continue
		}
		rows = append(rows, mergeRow(r, out.names))
	}
	if len(rows) > 0 {
		s.printTable("", head, rows)
	}
	if skipped > 0 {
		s.line("%s: --all lists them", plural(skipped, "new key"))
	}
	s.line("%d the same, %d new, %d decided on another master, %d in conflict", out.Counts[keyset.Same],
		out.Counts[keyset.New],
		out.Counts[keyset.Decided], out.Counts[keyset.Conflict])
}

func mergeRow(r keyset.Row, names []string) []cell {
	row := []cell{txt(r.ID)}
	for _, name := range names {
		text := ""
		for _, c := range r.Claims {
			if c.Source == name {
				text = claimText(c)
			}
		}
		row = append(row, txt(text))
	}
	if r.Becomes == nil {
		return append(row, txt("?").withTint(red))
	}
	return append(row, txt(claimText(*r.Becomes)).withTint(keyStateCell(r.Becomes.State).tint))
}

// claimText shows so much of a fingerprint as tells keys apart.
func claimText(c keyset.Claim) string {
	if c.State == adminapi.KeyDeleted {
		return c.State
	}
	return strings.TrimSpace(c.State + " " + c.Fingerprint[:min(len(c.Fingerprint), 11)])
}

func mergeEnd(s *screen, out merged, all, only bool) {
	mergeScreen(s, out, all)
	for _, k := range out.Failed {
		s.line("%s: %s", clean(k.ID), s.paint(red, clean(k.Error)))
	}
	switch {
	case out.Cluster == "":
		s.line("nothing was changed, for there is no cluster yet")
		nextSteps(s, []string{
			"saltclusterctl setup, and what it prints: on " + out.names[0],
			"saltclusterctl keys merge " + strings.Join(out.sourceFiles()[1:], " ") + ": there",
		})
	case out.Open > 0:
		s.line("%s", s.paint(red, fmt.Sprintf("%s not decided; nothing was changed", countIs(out.Open, "conflict"))))
		s.line("  --take MINION=SOURCE decides one, --prefer SOURCE all others")
	case only && out.puts > 0:
		s.line("nothing was changed; the cluster would be told %s", plural(out.puts, "key"))
	case out.puts == 0:
		s.line("%s", s.paint(green, "the cluster has all of it"))
	case out.Done > 0 || len(out.Failed) > 0:
		s.line("%s", s.paint(green, "the cluster was told "+plural(out.Done, "key")))
		if len(out.Failed) > 0 {
			s.line("%s", s.paint(red, plural(len(out.Failed), "key")+" changed meanwhile: run it again"))
		}
	}
}

func (out merged) sourceFiles() (all []string) {
	for _, s := range out.Sources {
		all = append(all, s.File)
	}
	return all
}

// countIs counts with a verb.
func countIs(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return plural(n, thing) + " are"
}
