package keys

import (
	"fmt"
	"strings"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

// mergeList is how many new keys are listed without --all.
const mergeList = 20

func mergeScreen(s *console.Screen, out merged, all bool) {
	for i, src := range out.Sources {
		end := ""
		if out.Cluster == "" && i == 0 {
			end = "; treated as the cluster, which does not exist yet"
		}
		s.Line("%s: %s%s", src.text, countsText(src.Counts), end)
	}
	head := []string{"MINION"}
	for _, name := range out.names {
		head = append(head, strings.ToUpper(console.Clean(name)))
	}
	head = append(head, "BECOMES")
	var rows [][]console.Cell
	skipped := 0
	for _, r := range out.Rows {
		if r.Kind == keyset.New && out.Counts[keyset.New] > mergeList && !all {
			skipped++
			continue
		}
		rows = append(rows, mergeRow(r, out.names))
	}
	if len(rows) > 0 {
		s.PrintTable("", head, rows)
	}
	if skipped > 0 {
		s.Line("%s: --all lists them", wording.Plural(skipped, "new key"))
	}
	s.Line("%d the same, %d new, %d decided on another master, %d in conflict", out.Counts[keyset.Same],
		out.Counts[keyset.New],
		out.Counts[keyset.Decided], out.Counts[keyset.Conflict])
}

func mergeRow(r keyset.Row, names []string) []console.Cell {
	row := []console.Cell{console.Txt(r.ID)}
	for _, name := range names {
		text := ""
		for _, c := range r.Claims {
			if c.Source == name {
				text = claimText(c)
			}
		}
		row = append(row, console.Txt(text))
	}
	if r.Becomes == nil {
		return append(row, console.Txt("?").WithTint(console.Red))
	}
	return append(row, console.Txt(claimText(*r.Becomes)).WithTint(keyStateCell(r.Becomes.State).Tint))
}

// claimText shows so much of a fingerprint as tells keys apart.
func claimText(c keyset.Claim) string {
	if c.State == adminapi.KeyDeleted {
		return c.State
	}
	return strings.TrimSpace(c.State + " " + c.Fingerprint[:min(len(c.Fingerprint), 11)])
}

func mergeEnd(s *console.Screen, out merged, all, only bool) {
	mergeScreen(s, out, all)
	for _, k := range out.Failed {
		s.Line("%s: %s", console.Clean(k.ID), s.Paint(console.Red, console.Clean(k.Error)))
	}
	switch {
	case out.Cluster == "":
		s.Line("nothing was changed: no cluster exists yet")
		console.NextSteps(s, []string{
			"saltclusterctl setup, and what it prints: on " + out.names[0],
			"saltclusterctl keys merge " + strings.Join(out.sourceFiles()[1:], " ") + ": there",
		})
	case out.Open > 0:
		s.Line("%s", s.Paint(console.Red, fmt.Sprintf("%s not decided; nothing was changed", countIs(out.Open, "conflict"))))
		s.Line("  --take MINION=SOURCE decides one, --prefer SOURCE all others")
	case only && out.puts > 0:
		s.Line("nothing was changed; %s would be merged into the cluster", wording.Plural(out.puts, "key"))
	case out.puts == 0:
		s.Line("%s", s.Paint(console.Green, "nothing to merge: the cluster's keys stay as they are"))
	case out.Done > 0 || len(out.Failed) > 0:
		s.Line("%s", s.Paint(console.Green, "merged "+wording.Plural(out.Done, "key")+" into the cluster"))
		if len(out.Failed) > 0 {
			s.Line("%s", s.Paint(console.Red, wording.Plural(len(out.Failed), "key")+" changed in the meantime: run it again"))
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
	return wording.Plural(n, thing) + " are"
}
