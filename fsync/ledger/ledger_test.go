package ledger

import (
	"reflect"
	"strings"
	"testing"
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
		"nobody":  {nil, nil},
		"alone":   {map[string]Ledger{"a": of("x", "1")}, nil},
		"same":    {map[string]Ledger{"a": of("x", "1"), "b": of("x", "1")}, nil},
		"off":     {map[string]Ledger{"a": of("x", "1"), "b": {Off: "no"}}, nil},
		"lacking": {map[string]Ledger{"a": of("x", "1"), "b": of()}, []Difference{{"x", map[string]string{"a": "1"}}}},
		"other": {
			map[string]Ledger{"a": of("x", "1", "y", "2"), "b": of("x", "3", "y", "2"), "c": of("y", "2", "w", "5")},
			[]Difference{{"w", map[string]string{"c": "5"}}, {"x", map[string]string{"a": "1", "b": "3"}}},
		},
	} {
		if got := Compare(c.nodes); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestSettled(t *testing.T) {
	stays := Difference{"stays", map[string]string{"a": "1"}}
	earlier := []Difference{stays, {"moves", map[string]string{"a": "1"}}, {"arrives", map[string]string{"a": "1"}}}
	later := []Difference{{"moves", map[string]string{"a": "2"}}, {"new", map[string]string{"a": "2"}}, stays}
	settled, moving := Settled(earlier, later)
	if !reflect.DeepEqual(settled, []Difference{stays}) || len(moving) != 2 {
		t.Errorf("%+v, %+v", settled, moving)
	}
}

func TestDecodeRefuses(t *testing.T) {
	raw, err := of("x", "1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Decode(raw); err != nil || l.Items["x"] != "1" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, raw := range []string{"", "[]", `{"items":{"x":"` + strings.Repeat("1", 200) + `"}}`, `{"items":{"` + strings.Repeat("x", 2000) + `":"1"}}`} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%.40q was taken", raw)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"items":{"x":"1"}}`))
	f.Add([]byte(`{"off":"no"}`))
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
