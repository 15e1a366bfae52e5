package spool

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// A consumer that is new to a journal begins with the oldest record there is, and misses none of those that others have
// done with.
func TestConsumer_AddedToOldJournal(t *testing.T) {
	var old, young sink
	c := Config{
		Dir: t.TempDir(), SegmentBytes: 1 << 12, Checkpoint: time.Millisecond,
		Consumers: []Consumer{{Name: "old", Consume: old.consume}},
	}
	s := open(t, c)
	load := bytes.Repeat([]byte("x"), 512)
	for range 40 {
		require.NoError(t, s.Append(t.Context(), Record{Minion: "web", Load: load}))
	}
	patience.WaitFor(t, "nothing is left", func() bool { return s.Stats().Segments == 0 })
	require.NoError(t, s.Close())
	c.Consumers = append(c.Consumers, Consumer{Name: "young", Consume: young.consume})
	s = open(t, c)
	require.NoError(t, s.Append(t.Context(), Record{Minion: "db", Load: load}))
	patience.WaitFor(t, "the new one", func() bool { return len(young.records()) == 1 && len(old.records()) == 41 })
	if st := s.Stats(); st.Damages > 0 || st.Lost > 0 || young.records()[0].Minion != "db" {
		t.Errorf("%+v, %+v", st, young.records())
	}
}

// Nothing depends on a consumer that is optional: neither are records kept for it, nor has it lost those that went
// while it waited, was away, or is away again.
func TestOptionalConsumer(t *testing.T) {
	var needed, other sink
	other.set(errors.New("not now"))
	c := Config{
		Dir: t.TempDir(), SegmentBytes: 1 << 12, KeepBytes: 1 << 11, Checkpoint: time.Millisecond,
		Consumers: []Consumer{{Name: "needed", Consume: needed.consume},
			{Name: "other", Consume: other.consume, Optional: true}},
	}
	both := c.Consumers
	s := open(t, c)
	add(t, s, 0, 200)
	patience.WaitFor(t, "nothing is kept", func() bool { return s.Stats().Segments <= 1 && len(needed.records()) == 200 })
	if st := s.Stats(); len(st.Consumers) != 1 || st.Consumers[0].Name != "needed" {
		t.Errorf("%+v", st.Consumers)
	}
	other.set(nil)
	add(t, s, 200, 201)
	patience.WaitFor(t, "the last one", func() bool {
		got := other.records()
		return len(got) > 0 && got[len(got)-1].Seq == 201
	})
	sound := func() {
		t.Helper()
		if st := s.Stats(); st.Damages > 0 || st.Lost > 0 {
			t.Errorf("%+v", st)
		}
		require.NoError(t, s.Close())
	}
	sound()
	for i, consumers := range [][]Consumer{both[:1], both, both[:1], both} {
		c.Consumers = consumers
		s = open(t, c)
		from := 201 + 200*i
		add(t, s, from, from+200)
		patience.WaitFor(t, "the needed one", func() bool { return len(needed.records()) == from+200 && s.Stats().Segments <= 1 })
		if len(consumers) == 2 {
			patience.WaitFor(t, "the other one", func() bool {
				got := other.records()
				return got[len(got)-1].Seq == uint64(from+200)
			})
		}
		sound()
	}
	check(t, needed.records(), 0, 1001)
}
