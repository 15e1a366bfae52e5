package spool

import (
	"bytes"
	"testing"
	"time"
)

// A consumer that is new to a journal begins with the oldest record there is, and misses none of those that others have done with.
func TestNewConsumerOfAnOldJournal(t *testing.T) {
	var old, young sink
	c := Config{
		Dir: t.TempDir(), SegmentBytes: 1 << 12, Checkpoint: time.Millisecond, Consumers: []Consumer{{Name: "old", Consume: old.consume}},
	}
	s := open(t, c)
	load := bytes.Repeat([]byte("x"), 512)
	for range 40 {
		if err := s.Append(t.Context(), Record{Minion: "web", Load: load}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "nothing is left", func() bool { return s.Stats().Segments == 0 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	c.Consumers = append(c.Consumers, Consumer{Name: "young", Consume: young.consume})
	s = open(t, c)
	if err := s.Append(t.Context(), Record{Minion: "db", Load: load}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new one", func() bool { return len(young.records()) == 1 && len(old.records()) == 41 })
	if st := s.Stats(); st.Damages > 0 || st.Lost > 0 || young.records()[0].Minion != "db" {
		t.Errorf("%+v, %+v", st, young.records())
	}
}
