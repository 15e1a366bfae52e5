package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run([]string{"-what", "job,storm,keys,network,needs,costs", "-nodes", "2,3", "-minions", "200"},
		&out); err != nil {
		t.Fatal(err)
	}
	tables, columns := 0, 0
	for line := range strings.Lines(out.String()) {
		switch n := strings.Count(line, "|"); {
		case strings.HasPrefix(line, "## "):
			tables, columns = tables+1, 0
		case n > 0 && columns == 0:
			columns = n
		case n != 0 && n != columns:
			t.Errorf("%d columns, not %d: %s", n, columns, line)
		}
	}
	if tables != len(parts) {
		t.Errorf("%d tables\n%s", tables, out.String())
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range []string{"-what jobs", "-nodes 1", "-nodes 3,x", "-minions 0", "-versions 2019", "-cores many"} {
		if err := run(strings.Fields(args), &strings.Builder{}); err == nil {
			t.Errorf("%s is taken", args)
		}
	}
}
