package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	// joined is where a literal continues on the next line.
	joined = regexp.MustCompile(`"\s*\+\s*"`)
	// placeholder is where a message has a value, and where messages are put together.
	placeholder = regexp.MustCompile(`…| [NE]\b|"?FILE"?|: |; `)
)

// leastMessage is the length from which a part of a message is looked for.
const leastMessage = 8

// TestMessages_Exist: the page of messages quotes those that the programs have.
func TestMessages_Exist(t *testing.T) {
	var code strings.Builder
	walkSources(t, func(_, path string) {
		if strings.Contains(path, "/integration/") {
			return
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(strings.ReplaceAll(joined.ReplaceAllString(string(raw), ""), `\"`, `"`))
	})
	quotes := 0
	for row := range strings.Lines(text(t, "../docs/reference/messages.md")) {
		cell, _, isRow := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !isRow {
			continue
		}
		for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
			for _, part := range placeholder.Split(m[1], -1) {
				part = strings.Trim(part, " ,")
				if len(part) < leastMessage || !strings.Contains(part, " ") {
					continue
				}
				if quotes++; !strings.Contains(code.String(), part) {
					t.Errorf("no program says %q, which messages.md quotes", part)
				}
			}
		}
	}
	if quotes < 15 {
		t.Errorf("only %d messages are quoted", quotes)
	}
}
