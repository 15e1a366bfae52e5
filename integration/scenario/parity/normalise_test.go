package parity

import (
	"testing"
)

func TestNormaliseMakesTwoRunsEqual(t *testing.T) {
	n1 := normaliser{hosts: []string{"m1"}, dirs: []string{"/tmp/scl0001"}}
	n2 := normaliser{hosts: []string{"m3"}, dirs: []string{"/tmp/scl0002"}}
	for name, pair := range map[string][2]string{
		"order of minions": {"a:\n    True\nb:\n    1\n", "b:\n    1\na:\n    True\n"},
		"order in json":    {"{\"a\": 1}\n{\"b\": {\"x\": 1, \"y\": 2}}\n", "{\"b\": {\"y\": 2, \"x\": 1}}\n{\"a\": 1}"},
		"job id":           {"jid: 20261121031020123456", "jid: 20261121041020123457_99"},
		"durations": {`{"a": {"duration": 1.5, "start_time": "10:00:00.1"}}`,
			`{"a": {"duration": 7, "start_time": "10:00:00.2"}}`},
		"directories":       {"/tmp/scl0001/m1/srv", "/tmp/scl0002/m3/srv"},
		"master's id":       {"m1_master:\n  x", "m3_master:\n  x"},
		"addresses":         {"at 10.99.0.11:4506", "at 10.99.0.14:4506"},
		"total run time":    {"Total run time:   12.300 ms", "Total run time:   9.1 ms"},
		"times in a string": {`{"a": "at 2026-11-21 03:00:00,123"}`, `{"a": "at 2026-11-21 04:00:00,456"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := n1.output(pair[0]), n2.output(pair[1]); a != b {
				t.Errorf("differ:\n%s\n--\n%s", a, b)
			}
		})
	}
}

func TestNormaliseKeepsDifferences(t *testing.T) {
	var n normaliser
	for name, pair := range map[string][2]string{
		"a minion missing": {"a:\n    True\nb:\n    True\n", "a:\n    True\n"},
		"a value":          {`{"a": true}`, `{"a": false}`},
		"whose value":      {"a:\n    1\nb:\n    2\n", "a:\n    2\nb:\n    1\n"},
		"a list's order":   {`{"a": [1, 2]}`, `{"a": [2, 1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if a, b := n.output(pair[0]), n.output(pair[1]); a == b {
				t.Errorf("equal: %s", a)
			}
		})
	}
}

func TestStepsAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	kept := map[string]bool{}
	for _, s := range Script() {
		if s.Name == "" || seen[s.Name] || len(s.Argv) == 0 {
			t.Errorf("step %q: no name, a name used twice, or no command", s.Name)
		}
		if seen[s.Name] = true; (s.Keep == "") != (s.Find == nil) {
			t.Errorf("step %q: Keep and Find belong together", s.Name)
		}
		kept[s.Keep] = true
	}
	if !kept["jid"] {
		t.Error("no step keeps a job id")
	}
}

func TestVariationsAreSteps(t *testing.T) {
	names := map[string]bool{}
	short := 0
	for _, s := range Script() {
		if names[s.Name] = true; !s.More {
			short++
		}
	}
	for _, v := range variations {
		if !names[v] {
			t.Errorf("%q is no step", v)
		}
	}
	if t.Logf("%d steps, %d of them in the short script", len(names), short); short < 50 {
		t.Errorf("the short script has only %d steps", short)
	}
}
