package ledger

import (
	"reflect"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func of(pairs ...string) Ledger {
	l := Ledger{Items: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		l.Items[pairs[i]] = pairs[i+1]
	}
	return l
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		nodes map[string]Ledger
		want  []Difference
	}{
		"nobody": {nil, nil},
		"alone":  {map[string]Ledger{"a": of("x", "1")}, nil},
		"same":   {map[string]Ledger{"a": of("x", "1"), "b": of("x", "1")}, nil},
		"off":    {map[string]Ledger{"a": of("x", "1"), "b": {Off: "no"}}, nil},
		"lacking": {map[string]Ledger{"a": of("x", "1"), "b": of()},
			[]Difference{{"x", map[string]string{"a": "1"}, []string{"b"}}}},
		"other": {
			map[string]Ledger{"a": of("x", "1", "y", "2"), "b": of("x", "3", "y", "2"), "c": of("y", "2", "w", "5")},
			[]Difference{{"w", map[string]string{"c": "5"}, []string{"a", "b"}},
				{"x", map[string]string{"a": "1", "b": "3"}, []string{"c"}}},
		},
	} {
		check.DeepEqual(t, Compare(c.nodes), c.want, name)
	}
}

func TestSettled(t *testing.T) {
	of := func(item, text string) Difference { return Difference{Item: item, Texts: map[string]string{"a": text}} }
	stays := of("stays", "1")
	earlier := []Difference{stays, of("moves", "1"), of("arrives", "1")}
	later := []Difference{of("moves", "2"), of("new", "2"), stays}
	settled, moving := Settled(earlier, later)
	if !reflect.DeepEqual(settled, []Difference{stays}) || len(moving) != 2 {
		t.Errorf("%+v, %+v", settled, moving)
	}
}

// Not all nodes need everything: three of five keep an item, and each for its own time.
func TestRules(t *testing.T) {
	rules := Rules{
		Needs: func(node, _ string) bool { return node != "spare" },
		More:  func(text, than string) bool { return text > than },
	}
	at := func(made, since int64, l Ledger) Ledger {
		l.Since = since
		if made > 0 {
			l.Made = map[string]int64{"x": made}
		}
		return l
	}
	for name, c := range map[string]struct {
		nodes map[string]Ledger
		want  *Difference
	}{
		"not needed, not there": {map[string]Ledger{"a": of("x", "1"), "b": of("x", "1"), "spare": of()}, nil},
		"an old copy":           {map[string]Ledger{"a": of("x", "2"), "b": of("x", "2"), "spare": of("x", "1")}, nil},
		"a copy with more": {
			map[string]Ledger{"a": of("x", "2"), "spare": of("x", "3")},
			&Difference{"x", map[string]string{"a": "2", "spare": "3"}, nil},
		},
		"nowhere but there": {
			map[string]Ledger{"a": of(), "b": of(), "spare": of("x", "1")},
			&Difference{"x", map[string]string{"spare": "1"}, []string{"a", "b"}},
		},
		"moving":             {map[string]Ledger{"a": of("x", "1"), "b": of(), "c": of("x", Moving)}, nil},
		"removed":            {map[string]Ledger{"a": of("x", "1"), "b": of("x", Removed)}, nil},
		"removed everywhere": {map[string]Ledger{"a": of("x", Removed), "b": of("x", Removed), "c": of()}, nil},
		"too old for one":    {map[string]Ledger{"a": at(5, 0, of("x", "1")), "b": at(0, 6, of())}, nil},
		"not too old": {
			map[string]Ledger{"a": at(7, 0, of("x", "1")), "b": at(0, 6, of())},
			&Difference{"x", map[string]string{"a": "1"}, []string{"b"}},
		},
	} {
		var want []Difference
		if c.want != nil {
			want = []Difference{*c.want}
		}
		check.DeepEqual(t, rules.Compare(c.nodes), want, name)
	}
}

func TestDecodeRefuses(t *testing.T) {
	raw, err := of("x", "1").Encode()
	require.NoError(t, err)
	if l, err := Decode(raw); err != nil || l.Items["x"] != "1" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, raw := range []string{"", "[]", `{"items":{"x":"` + strings.Repeat("1", 200) + `"}}`,
		`{"items":{"` + strings.Repeat("x", 2000) + `":"1"}}`} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%.40q was taken", raw)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"items":{"x":"1"}}`))
	f.Add([]byte(`{"off":"no"}`))
	f.Add([]byte(`{"items":{"x":"~","y":"-"},"made":{"x":7},"since":6}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := Decode(raw)
		if err != nil {
			return
		}
		if _, err := l.Encode(); err != nil {
			t.Error(err)
		}
	})
}
