package guides

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

const page = "# A page\n\nText with `prog one` and `prog\ntwo --flag`.\n\n" +
	"    prog three --flag X      says something\n    prog four   # too\n\n" +
	"1. A list:\n\n       prog five\n\n" +
	"```sh runnable=site on=m2 answer=y exit=10 within=1m\nprog six \\\n  --more # six\nprog seven | prog eight > file\n```\n\n" +
	"```text shows\na  b … c\n```\n\n```yaml\nkey: value\n```\n"

func TestCommands(t *testing.T) {
	p := NewPage("docs/page.md", page)
	var got []string
	for _, c := range append(p.Lines(), p.Spans()...) {
		for _, args := range Arguments(c.Text, "prog") {
			got = append(got, fmt.Sprintf("%d%v", c.Line, args))
		}
	}
	want := "6[three --flag X] 7[four] 11[five] 15[six --more] 16[seven] 16[eight] 3[one] 3[two --flag]"
	check.Equal(t, strings.Join(got, " "), want)
}

func TestArguments(t *testing.T) {
	for line, want := range map[string]string{
		`prog a 'b c' "d"`:                   "[[a b c d]]",
		`ssh m2 prog a && prog b; prog c`:    "[[a] [b] [c]]",
		`prog a|b x 2>/dev/null`:             "[[a|b x 2]]",
		`program a`:                          "[]",
		`x | prog`:                           "[[]]",
		`prog keys 'web*' --take web1=m2 <x`: "[[keys web* --take web1=m2]]",
	} {
		check.Equal(t, fmt.Sprint(Arguments(line, "prog")), want, line)
	}
}

func TestRunnables(t *testing.T) {
	all, err := NewPage("docs/page.md", page).Runnables()
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	r := all[0]
	if r.Stage != Site || r.On != "m2" || r.Answer != "y" || r.Exit != 10 || r.Within != time.Minute ||
		r.Name() != "page.md line 14" ||
		!strings.HasPrefix(r.Script, "prog six") || len(r.Shows) != 1 {
		t.Errorf("%+v", r)
	}
	for _, text := range []string{
		"```sh runnable=nowhere\nx\n```", "```sh runnable=site at=noon\nx\n```", "```python runnable=site\nx\n```",
		"```sh runnable=site exit=x\nx\n```", "```text shows\nx\n```",
		"```sh runnable=site\nx\n```\nbetween\n```text shows\nx\n```",
	} {
		if _, err := NewPage("x.md", text).Runnables(); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestLacks(t *testing.T) {
	for shows, want := range map[string]string{
		"a b  c":     "",
		"a b … d":    "",
		"c\na b":     "a b", // in another order
		"x y":        "x y",
		"":           "",
		"a … b  c d": "",
	} {
		check.Equal(t, Lacks("a b   c d", strings.Split(shows, "\n")), want, shows)
	}
}

// What is marked is marked rightly, and there is something on every stage.
func TestPages(t *testing.T) {
	pages, err := Read("../..")
	require.NoError(t, err)
	stages := map[string]int{}
	for _, p := range pages {
		all, err := p.Runnables()
		check.NoError(t, err)
		for _, r := range all {
			stages[r.Stage]++
		}
	}
	for _, stage := range []string{Plain, Site, End} {
		if stages[stage] == 0 {
			t.Errorf("nothing is run on the stage %s", stage)
		}
	}
	t.Log(stages)
}
