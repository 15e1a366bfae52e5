package state

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func levelCommands() []Command {
	return []Command{LevelSet{Level: LevelLives, Audit: Audit{By: "m1", At: 5, Cause: "test"}}}
}

// A level only rises, and nothing that older nodes cannot read is written before it was agreed.
func TestLevel(t *testing.T) {
	s := born(t)
	again := func() uint64 {
		t.Helper()
		for _, c := range []Command{
			KeySet{ID: "m", State: KeyAccepted, Pub: "P", BaseRev: s.View().KeyRev("m")},
			KeySet{ID: "m", State: KeyDeleted, BaseRev: s.View().Rev() + 1},
			KeySet{ID: "m", State: KeyAccepted, Pub: "P", BaseRev: s.View().Rev() + 2},
		} {
			if r := s.ApplyCommands(c)[0]; r.Code != OK {
				t.Fatalf("%+v: %+v", c, r)
			}
		}
		k, _ := s.View().Key("m")
		return k.Again
	}
	if n := again(); n != 0 {
		t.Errorf("a life is noted at revision %d, which older nodes do not understand", n)
	}
	if text := dump(t, s.View()); strings.Contains(text, `"again"`) || strings.Contains(text, `"level"`) {
		t.Errorf("older nodes cannot read %s", text)
	}
	for _, step := range []struct {
		to   uint16
		code Code
		want uint16
	}{{0, Invalid, 0}, {Level + 1, Invalid, 0}, {1, OK, 1}, {Level, OK, Level}, {1, OK, Level}} {
		rev := s.View().Rev()
		r := s.ApplyCommands(LevelSet{Level: step.to})[0]
		if r.Code != step.code || s.View().Level() != step.want {
			t.Errorf("to %d: %+v, level %d", step.to, r, s.View().Level())
		}
		if same := s.View().Rev() == rev; step.to == 1 && step.want == Level && !same {
			t.Error("nothing changed, but the revision did")
		}
	}
	if s.ApplyCommands(KeySet{ID: "m", State: KeyDeleted, BaseRev: s.View().KeyRev("m")}); again() == 0 {
		t.Error("the new life is not noted")
	}
	b, err := EncodeCommand(LevelSet{Level: Level + 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeCommand(b); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a level of a newer version: %v", err)
	}
	newer := strings.Replace(dump(t, s.View()), fmt.Sprintf(`{"level":%d}`, Level), fmt.Sprintf(`{"level":%d}`, Level+1),
		1)
	if _, err := ReadSnapshot(strings.NewReader(newer)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("a snapshot of a newer version: %v", err)
	}
	got, err := ReadSnapshot(strings.NewReader(dump(t, s.View())))
	if err != nil || got.View().Level() != Level || dump(t, got.View()) != dump(t, s.View()) {
		t.Errorf("after a snapshot: %v", err)
	}
}
