package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "write the tables of docs/explanation/sizing.md anew")

const sizing = "../../../docs/explanation/sizing.md"

var command = regexp.MustCompile(`^    make scale ARGS="(.*)"$`)

var quick = regexp.MustCompile(`-what (keys|needs)\b`)

// Every table of docs/explanation/sizing.md that has a command is what the command prints. Those of large herds take seconds, and
// are looked at with SALTCLUSTER_LONG only.
func TestTheTablesOfTheGuide(t *testing.T) {
	raw, err := os.ReadFile(sizing)
	require.NoError(t, err)
	long := os.Getenv("SALTCLUSTER_LONG") != "" || *update
	lines := strings.Split(string(raw), "\n")
	var out []string
	tables := 0
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		m := command.FindStringSubmatch(lines[i])
		if m == nil {
			continue
		}
		tables++
		var old []string
		for i++; i < len(lines) && (lines[i] == "" && len(old) == 0 || strings.HasPrefix(lines[i], "|")); i++ {
			if lines[i] != "" {
				old = append(old, lines[i])
			}
		}
		i--
		now := old
		if long || quick.MatchString(m[1]) {
			now = table(t, strings.Fields(m[1]))
		}
		if strings.Join(now, "\n") != strings.Join(old, "\n") && !*update {
			t.Errorf("%s: go test ./integration/scale/cmd -update writes it anew", m[0])
		}
		out = append(append(out, ""), now...)
		if i+1 < len(lines) && lines[i+1] != "" {
			out = append(out, "")
		}
	}
	if tables == 0 {
		t.Error("no table has a command")
	}
	if text := strings.Join(out, "\n"); *update && text != string(raw) {
		require.NoError(t, os.WriteFile(sizing, []byte(text), 0o644))
	}
}

// table is the lines of the one table that a command prints.
func table(t *testing.T, args []string) (lines []string) {
	t.Helper()
	var out strings.Builder
	require.NoError(t, run(args, &out))
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "|") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	if strings.Count(out.String(), "## ") != 1 {
		t.Errorf("%v: not one table", args)
	}
	return lines
}
