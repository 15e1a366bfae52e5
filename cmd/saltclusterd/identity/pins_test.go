package identity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

func TestPins(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	var a pins
	a.record("early", "old", at(1))
	if a.setChange(""); len(a.list().Pins) != 0 {
		t.Error("pins are kept though nothing is under way")
	}
	if !a.setChange("new") || a.setChange("new") {
		t.Error("news of a change")
	}
	for id, fp := range map[string]string{"told": "new", "untold": "old", "moved": "old"} {
		if a.record(id, fp, at(10)) {
			t.Errorf("%s refuses us", id)
		}
	}
	if !a.record("alien", "", at(10)) || a.record("alien", "", at(11)) {
		t.Error("who refuses us is said once")
	}
	if a.record("alien", "old", at(12)); !a.record("alien", "", at(13)) {
		t.Error("who refuses us again is not said")
	}
	text, err := json.Marshal(a.list())
	require.NoError(t, err)
	kept, err := parsePins(text)
	require.NoError(t, err)
	var b pins
	b.setChange("new")
	b.record("moved", "new", at(20))
	b.merge(kept)
	if got := b.list().Pins; len(got) != 4 || got["moved"].FP != "new" || got["told"].FP != "new" {
		t.Errorf("what was known before: %v", got)
	}
	b.setChange("another")
	if b.merge(kept); len(b.list().Pins) != 0 {
		t.Error("pins of another change are taken over")
	}
	other := pinList{Change: "other", Pins: map[string]pin{"untold": {"new", at(99)}}}
	s := sortMinions([]string{"told", "untold", "moved", "alien", "away"}, latestPins("new", []pinList{
		kept, other, {Change: "new", Pins: map[string]pin{"moved": {"new", at(20)}, "told": {"old", at(5)}}},
	}), "new")
	if !slices.Equal(s.ready, []string{"told", "moved"}) || !slices.Equal(s.former, []string{"untold"}) ||
		!slices.Equal(s.foreign, []string{"alien"}) || !slices.Equal(s.unseen, []string{"away"}) || s.countBehind() != 3 {
		t.Errorf("%+v", s)
	}
	lines := strings.Join(s.describe(), "\n")
	if !strings.Contains(lines, "away, 1") && !strings.Contains(lines, ": away") {
		t.Errorf("%s", lines)
	}
	for i := range maxForeign + 5 {
		a.record(fmt.Sprint("m", i), "", at(1))
	}
	if len(a.foreign) > maxForeign {
		t.Errorf("%d minions are remembered for refusing us", len(a.foreign))
	}
}

func FuzzParsePins(f *testing.F) {
	f.Add([]byte(`{"change":"ab","pins":{"web1":{"fp":"ab","at":"2026-01-02T03:04:05Z"}}}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parsePins(b)
		if err != nil {
			return
		}
		var p pins
		p.setChange(list.Change)
		p.merge(list)
		if got := p.list(); list.Change != "" && len(got.Pins) != len(list.Pins) {
			t.Errorf("%d pins of %d", len(got.Pins), len(list.Pins))
		}
	})
}
