package peer

import (
	"bytes"
	"errors"
	"testing"

	"saltclusterd/gossip/node"
)

func TestAskStanding_MemberAndRemoved(t *testing.T) {
	m, old := newMesh(t), newMesh(t)
	a := m.member("a", func(c *Config) {
		c.Standing = func(id node.ID, fp node.Fingerprint) Standing {
			e, ok := c.Roster.Lookup(id)
			return Standing{Member: ok && e.Fingerprint == fp, Rev: 7, Generation: 2}
		}
	})
	b := old.member("b", nil)
	old.add(entryOf(a))
	got, err := b.AskStanding(t.Context(), "a")
	if want := (Standing{Rev: 7, Generation: 2}); err != nil || got != want {
		t.Errorf("a stranger hears %+v, %v; want %+v", got, err, want)
	}
	m.add(entryOf(b))
	if got, err := b.AskStanding(t.Context(), "a"); err != nil || !got.Member {
		t.Errorf("a member hears %+v, %v", got, err)
	}
	old.remove("a")
	if _, err := b.AskStanding(t.Context(), "a"); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("asking somebody who is no member here: %v", err)
	}
	if got, err := b.AskFormer(t.Context(), entryOf(a)); err != nil || !got.Member {
		t.Errorf("asking somebody who was one: %+v, %v", got, err)
	}
	other := entryOf(a)
	other.Fingerprint = entryOf(b).Fingerprint
	if _, err := b.AskFormer(t.Context(), other); !errors.Is(err, ErrWrongNode) {
		t.Errorf("somebody else is at its address: %v", err)
	}
}

// Without a handler the question fails, and takes no place of a join.
func TestAskStanding_NoHandler(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", nil)
	b := m.member("b", nil)
	if s, err := b.AskStanding(t.Context(), "a"); err == nil {
		t.Errorf("heard %+v", s)
	}
	a.guard.mu.Lock()
	defer a.guard.mu.Unlock()
	if a.guard.running != 0 {
		t.Errorf("%d places of joins are taken for good", a.guard.running)
	}
}

func FuzzStanding(f *testing.F) {
	f.Add(Standing{Member: true, Rev: 1<<40 + 3, Generation: 2}.appendTo(nil))
	f.Add(Standing{}.appendTo(nil))
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseStanding(b)
		if err == nil && !bytes.Equal(s.appendTo(nil), b) {
			t.Errorf("%x means %+v, which is %x", b, s, s.appendTo(nil))
		}
	})
}
