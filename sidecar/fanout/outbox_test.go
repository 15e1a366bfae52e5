package fanout

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"saltclusterd/sidecar/late"
)

func seqs(recs []record) []uint64 {
	var out []uint64
	for _, r := range recs {
		out = append(out, r.seq)
	}
	return out
}

func TestOutboxCursor(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOutbox(3, 1<<20, time.Minute, func() time.Time { return now })
	buf := make([]record, 0, 2)
	if recs, missed, _ := o.recordsAfter(0, buf); recs != nil || missed != 0 {
		t.Fatalf("empty: %v, %d missed", recs, missed)
	}
	for range 5 {
		o.addRecord(kindPublication, 0, nil, nil)
	}
	recs, missed, _ := o.recordsAfter(0, buf)
	if got := seqs(recs); !slices.Equal(got, []uint64{3, 4}) || missed != 2 {
		t.Errorf("after 0: %v, %d missed; want 3 4, 2 missed", got, missed)
	}
	recs, missed, more := o.recordsAfter(4, buf)
	if got := seqs(recs); !slices.Equal(got, []uint64{5}) || missed != 0 {
		t.Errorf("after 4: %v, %d missed", got, missed)
	}
	o.addRecord(kindPublication, 0, nil, nil)
	select {
	case <-more:
	default:
		t.Error("nobody was told of a new record")
	}
}

// A large fleet that starts after a power cut does not take the place of a publication for a peer that is cut off.
func TestOutbox_FleetStarts(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOutbox(outboxRecords, outboxBytes, MaxAge, func() time.Time { return now })
	o.addRecord(kindPublication, 0, make([]byte, 600), nil)
	for i := range 100_000 {
		o.addRecord(kindStart, 0, appendStart(nil, late.Start{ID: fmt.Sprint("minion-", i), Process: 7, At: now}, now), nil)
	}
	if recs, missed, _ := o.recordsAfter(0, make([]record, 0, 1)); missed > 0 || len(recs) != 1 || recs[0].seq != 1 {
		t.Errorf("%d records are missed", missed)
	}
	if _, bytes := o.countHeld(); bytes > outboxBytes/4 {
		t.Errorf("%d bytes for the starts of 100,000 minions", bytes)
	}
}

func TestOutbox_Expired(t *testing.T) {
	now := time.Unix(1000, 0)
	o := newOutbox(100, 1<<20, 30*time.Second, func() time.Time { return now })
	o.addRecord(kindPublication, 0, nil, nil)
	o.addRecord(kindPublication, 0, nil, nil)
	now = now.Add(31 * time.Second)
	o.addRecord(kindPublication, 0, nil, nil)
	recs, missed, _ := o.recordsAfter(0, make([]record, 0, 10))
	if got := seqs(recs); !slices.Equal(got, []uint64{3}) || missed != 2 {
		t.Errorf("after a pause: %v, %d missed; want 3, 2 missed", got, missed)
	}
	now = now.Add(31 * time.Second)
	if recs, missed, _ := o.recordsAfter(0, make([]record, 0, 10)); len(recs) != 0 || missed != 3 {
		t.Errorf("the last one is old, too: %v, %d missed", seqs(recs), missed)
	}
}

func TestOutboxBytesAreBounded(t *testing.T) {
	o := newOutbox(1000, 10_000, time.Hour, time.Now)
	for range 100 {
		o.addRecord(kindPublication, 0, make([]byte, 1000), nil)
	}
	if o.bytes > 10_000 {
		t.Errorf("%d bytes kept, 10000 allowed", o.bytes)
	}
}

// TestOutboxUnsent: a peer that acknowledges what was never sent gets nothing, and ends nothing.
func TestOutboxUnsent(t *testing.T) {
	o := newOutbox(1000, 1<<20, time.Minute, time.Now)
	for range 3 {
		o.addRecord(kindHeartbeat, 0, nil, nil)
	}
	for _, seq := range []uint64{3, 4, 1 << 63, math.MaxUint64 - 1, math.MaxUint64} {
		if recs, missed, _ := o.recordsAfter(seq, make([]record, 0, 8)); len(recs) > 0 || missed > 0 {
			t.Errorf("after %d: %d records, %d missed", seq, len(recs), missed)
		}
	}
}
