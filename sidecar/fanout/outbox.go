package fanout

import (
	"sort"
	"sync"
	"time"

	"saltclusterd/sidecar/hlc"
)

// outbox is the bounded log of the records this node originates, encoded once for all peers.
type outbox struct {
	maxRecords int
	maxBytes   int
	maxAge     time.Duration
	now        func() time.Time

	mu     sync.Mutex
	recs   []record // ascending by seq without gaps
	bytes  int
	next   uint64        // sequence number of the next record
	frozen bool          // see Hub.Freeze
	added  chan struct{} // closed and replaced when a record is added
}

type record struct {
	seq uint64
	at  time.Time
	buf []byte
}

func newOutbox(maxRecords, maxBytes int, maxAge time.Duration, now func() time.Time) *outbox {
	return &outbox{maxRecords: maxRecords, maxBytes: maxBytes, maxAge: maxAge, now: now, next: 1,
		added: make(chan struct{})}
}

// addRecord appends a record and drops what exceeds the bounds. before, which may be empty, is another record that is
// sent with it each time. A frozen outbox takes nothing: false.
func (o *outbox) addRecord(k kind, clock hlc.Timestamp, payload, before []byte) (added bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.frozen {
		return false
	}
	buf := append(make([]byte, 0, len(before)+headerSize+len(payload)), before...)
	buf = appendRecord(buf, header{kind: k, seq: o.next, clock: clock}, payload)
	o.recs = append(o.recs, record{seq: o.next, at: o.now(), buf: buf})
	o.next++
	o.bytes += len(buf)
	o.dropExcess()
	close(o.added)
	o.added = make(chan struct{})
	return true
}

// dropExcess drops records that are too many, too large together or too old to be delivered. The caller holds mu.
func (o *outbox) dropExcess() {
	oldest := o.now().Add(-o.maxAge)
	drop := 0
	for drop < len(o.recs) && (len(o.recs)-drop > o.maxRecords || o.bytes > o.maxBytes || o.recs[drop].at.Before(oldest)) {
		o.bytes -= len(o.recs[drop].buf)
		drop++
	}
	if drop == 0 {
		return
	}
	clear(o.recs[:drop])
	o.recs = o.recs[drop:]
	if cap(o.recs) > 4*len(o.recs)+64 { // let the array behind a long burst go
		o.recs = append([]record(nil), o.recs...)
	}
}

// recordsAfter copies up to cap(buf) records that follow seq into buf, and returns how many were dropped before they
// could be returned, and a channel that is closed when more arrive.
func (o *outbox) recordsAfter(seq uint64, buf []record) (recs []record, missed uint64, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropExcess()
	if seq >= o.next { // a peer that says it has what was never sent
		return nil, 0, o.added
	}
	first := o.next - uint64(len(o.recs))
	if seq+1 < first {
		missed, seq = first-seq-1, first-1
	}
	from := int(seq + 1 - first)
	if from >= len(o.recs) {
		return nil, missed, o.added
	}
	return append(buf[:0], o.recs[from:min(len(o.recs), from+cap(buf))]...), missed, o.added
}

// countHeld is how much is kept.
func (o *outbox) countHeld() (records, bytes int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropExcess()
	return len(o.recs), o.bytes
}

// seqBefore returns the sequence number of the newest record that is older than t, 0 when there was none.
func (o *outbox) seqBefore(t time.Time) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	younger := len(o.recs) - sort.Search(len(o.recs), func(i int) bool { return !o.recs[i].at.Before(t) })
	return o.next - 1 - uint64(younger)
}
