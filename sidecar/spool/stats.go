package spool

import "time"

// counters since Open, guarded by Spool.mu.
type counters struct{ appended, syncs, damages, lost uint64 }

// Stats is what a Spool looks like now.
type Stats struct {
	State    State
	Err      string // what the disk said, when State is not ok
	Bytes    int64  // of all segments
	MaxBytes int64
	Segments int
	Waiting  int    // records that wait for the disk
	Last     uint64 // number of the newest record
	Appended uint64 // since Open
	Syncs    uint64 // fsyncs of records since Open
	Damages  uint64 // damaged places found since Open
	Lost     uint64 // and the records lost in them

	Consumers []ConsumerStats // without those that are optional
}

// ConsumerStats is how far a consumer is.
type ConsumerStats struct {
	Name    string
	Done    uint64 // number of the last record it is done with
	Pending uint64 // records it has not done
	Err     string
	Since   time.Time // when Err came up
}

// Stats describes the spool; one that is not open yet is empty.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == fresh { // Open may be reading what is there
		return Stats{State: StateOK, MaxBytes: s.c.MaxBytes}
	}
	st := Stats{
		State: stateOf(s.fault), Bytes: s.bytes, MaxBytes: s.c.MaxBytes, Segments: len(s.segments),
		Waiting: len(s.waiting.waiters), Last: s.next - 1, Appended: s.stats.appended, Syncs: s.stats.syncs,
		Damages: s.stats.damages, Lost: s.stats.lost,
	}
	if s.fault != nil {
		st.Err = s.fault.Error()
	} else if s.full {
		st.State, st.Err = StateFull, ErrFull.Error()
	}
	for _, k := range s.consumers {
		if k.Optional {
			continue
		}
		c := ConsumerStats{Name: k.Name, Done: k.done, Pending: s.next - 1 - k.done}
		if k.err != nil {
			c.Err, c.Since = k.err.Error(), k.failing
		}
		st.Consumers = append(st.Consumers, c)
	}
	return st
}
