package mirror

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"saltclusterd/signal"
)

// queue is what waits for one peer.
type queue struct {
	run    uint64 // tells its numbers from those of another queue for the same peer
	limits Limits
	now    func() time.Time

	mu      sync.Mutex
	waiting []waiting
	bytes   int
	next    uint64 // number of the next event to be queued
	wake    chan struct{}
}

type waiting struct {
	event
	at time.Time
}

// Limits bound what waits for one peer. Zero values take the defaults named.
type Limits struct {
	Events int           // 4,096
	Bytes  int           // 8 MiB
	Age    time.Duration // 30 s
}

func (l *Limits) setDefaults() {
	if l.Events == 0 {
		l.Events = 4096
	}
	if l.Bytes == 0 {
		l.Bytes = 8 << 20
	}
	if l.Age == 0 {
		l.Age = 30 * time.Second
	}
}

func newQueue(l Limits, now func() time.Time) *queue {
	var run [8]byte
	_, _ = rand.Read(run[:]) // never fails
	return &queue{run: binary.BigEndian.Uint64(run[:]), limits: l, now: now, wake: make(chan struct{}, 1)}
}

// addEvent queues an event and says how many had to go for it.
func (q *queue) addEvent(e event) (dropped int) {
	q.mu.Lock()
	q.waiting = append(q.waiting, waiting{e, q.now()})
	q.bytes += e.byteSize()
	q.next++
	for len(q.waiting) > q.limits.Events || q.bytes > q.limits.Bytes && len(q.waiting) > 1 {
		q.dropFirst()
		dropped++
	}
	q.mu.Unlock()
	signal.Send(q.wake)
	return dropped
}

func (q *queue) dropFirst() {
	q.bytes -= q.waiting[0].byteSize()
	q.waiting[0] = waiting{}
	q.waiting = q.waiting[1:]
}

// takeBatch returns what waits, as much as fits a batch, and how many events had grown too old. It stays in the queue
// until sent.
func (q *queue) takeBatch() (b batch, old int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	limit := q.now().Add(-q.limits.Age)
	for len(q.waiting) > 0 && q.waiting[0].at.Before(limit) {
		q.dropFirst()
		old++
	}
	b.run, b.first = q.run, q.next-uint64(len(q.waiting))
	size := 0
	for _, w := range q.waiting {
		if len(b.events) == batchEvents || len(b.events) > 0 && size+w.byteSize() > batchBytes {
			break
		}
		b.events, size = append(b.events, w.event), size+w.byteSize()
	}
	return b, old
}

// removeSent removes the events before number upTo.
func (q *queue) removeSent(upTo uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) > 0 && q.next-uint64(len(q.waiting)) < upTo {
		q.dropFirst()
	}
}
