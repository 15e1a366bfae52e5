package main

import (
	"errors"
	"strings"
	"testing"
)

const found = `{"Issues":[
{"rule_id":"G304","details":"inclusion","file":"/m/a/b.go","line":"7","code":"6: x\n7: \tos.Open(path)\n8: y\n"},
{"rule_id":"G115","details":"overflow","file":"/m/c.go","line":"3-4","code":"3: uint8(n)\n4: z\n"}
],"Stats":{"files":9}}`

func TestTriage(t *testing.T) {
	for name, c := range map[string]struct {
		decisions, want string
		ok              bool
	}{
		"all": {"# comment\nG304 ^a/ configured\nG115 ^c.go:.uint8\\(n\\)$ small\n  by its type\n",
			"2 findings, 0 open", true},
		"one lacks":  {"G304 ^a/ configured\n", "G115 c.go: uint8(n) (line 3-4): overflow", false},
		"one more":   {"G304 . x\nG115 . x\nG401 . sha1\n", "G401 .: nothing is found", false},
		"elsewhere":  {"G304 ^b/ x\nG115 . x\n", "G304 a/b.go: os.Open(path)", false},
		"no reason":  {"G304 .\nG115 . x\n", "", false},
		"no pattern": {"G304\n", "", false},
	} {
		var out strings.Builder
		err := triage(&out, strings.NewReader(found), c.decisions, "/m")
		if (err == nil) != c.ok || !strings.Contains(out.String(), c.want) {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if c.want != "" && !c.ok && !errors.Is(err, errOpen) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, broken := range []string{"", `{"Issues":[],"Stats":{"files":0}}`,
		`{"Stats":{"files":1},"Golang errors":{"a":[{}]}}`} {
		if err := triage(&strings.Builder{}, strings.NewReader(broken), "", "/m"); err == nil {
			t.Errorf("%q: no error", broken)
		}
	}
}
