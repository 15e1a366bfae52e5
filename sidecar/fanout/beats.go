package fanout

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// beats stamps heartbeats with this node's time, in a way that no other run of its daemon does.
type beats struct {
	base  uint64 // no less than 1
	began time.Time
	now   func() time.Time
}

func newBeats(now func() time.Time) beats {
	return beats{base: 1 + rand.Uint64N(1<<62), began: now(), now: now}
}

func (b *beats) stampAt(now time.Time) uint64 {
	return b.base + uint64(now.Sub(b.began).Microseconds())
}

// noteAnswered notes that o has heard the heartbeat with that stamp before it sent what was just read, and returns when
// that was; the zero time when the stamp is not one of ours.
func (b *beats) noteAnswered(o *origin, stamp uint64) time.Time {
	if stamp < b.base || stamp > b.stampAt(b.now()) {
		return time.Time{}
	}
	at := int64(stamp-b.base) * int64(time.Microsecond)
	storeMax(&o.told, at)
	return b.timeOf(at)
}

// sinceStart is t as nanoseconds since the daemon began, by a clock that cannot be set; timeOf is the way back.
func (b *beats) sinceStart(t time.Time) int64 { return int64(t.Sub(b.began)) }
func (b *beats) timeOf(at int64) time.Time    { return b.began.Add(time.Duration(at)) }

func storeMax(v *atomic.Int64, to int64) {
	for {
		old := v.Load()
		if old >= to || v.CompareAndSwap(old, to) {
			return
		}
	}
}
