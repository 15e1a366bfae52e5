package fanout

import (
	"context"
	"fmt"
	"math"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/late"

	"golang.org/x/sync/semaphore"
)

// A hub continues in another process under the same run: its peers then know which of its records they have, and it
// knows which of theirs its minions have got.

// deliveries is how many records can be delivered at the same time.
const deliveries = 1 << 30

func newGate() *semaphore.Weighted { return semaphore.NewWeighted(deliveries) }

// Freeze holds the records of peers back, and waits until the one being delivered is. Local must not be called until
// Thaw. A hub that cannot be frozen before ctx ends continues as before.
func (h *Hub) Freeze(ctx context.Context) error {
	if err := h.in.gate.Acquire(ctx, deliveries); err != nil {
		return fmt.Errorf("freeze the fan-out: %w", err)
	}
	h.out.setFrozen(true)
	return nil
}

// Thaw lets everything continue.
func (h *Hub) Thaw() {
	h.out.setFrozen(false)
	h.in.gate.Release(deliveries)
}

// Hand ends the streams of peers, which continue in another process; links end with Close.
func (h *Hub) Hand() {
	h.in.handed = true
	h.in.gate.Release(deliveries)
	h.in.forgetExcept(nil)
}

// Export writes a frozen hub down.
func (h *Hub) Export() []byte {
	e := &handover.Encoder{}
	e.String(h.run)
	e.Uint(uint64(max(h.in.since.UnixMicro(), 0)))
	h.out.exportTo(e)
	h.in.exportTo(e)
	return e.Record()
}

// Import makes a new hub continue where another one stopped; to be called before Open.
func (h *Hub) Import(record []byte) error {
	d := handover.NewDecoder(record)
	h.run = d.String()
	h.in.taken = time.UnixMicro(int64(d.Int(math.MaxInt64)))
	h.out.restoreFrom(d)
	h.in.restoreFrom(d)
	if err := d.End(); err != nil {
		return fmt.Errorf("fan-out: %w", err)
	}
	return nil
}

// ExportRecent writes down what a frozen hub may give late, and which processes of minions it knows.
func (h *Hub) ExportRecent() []byte {
	now := h.now()
	e := &handover.Encoder{}
	pubs := h.memory.Since(now.Add(-MaxAge))
	e.Int(len(pubs))
	for _, p := range pubs {
		e.String(p.JID)
		e.String(p.Origin)
		e.Duration(now.Sub(p.At))
		e.Int(len(p.Topics))
		for _, t := range p.Topics {
			e.String(t)
		}
		e.Bytes(p.Plain)
	}
	e.Bool(h.busy.Load())
	starts := h.processes.All()
	e.Int(len(starts))
	for _, s := range starts {
		e.String(s.ID)
		e.Uint(uint64(s.Process))
		e.Duration(now.Sub(s.At))
	}
	return e.Record()
}

// ImportRecent takes over what ExportRecent has written.
func (h *Hub) ImportRecent(record []byte) error {
	now := h.now()
	d := handover.NewDecoder(record)
	for range d.Count() {
		p := late.Publication{JID: d.String(), Origin: d.String(), At: now.Add(-d.Duration())}
		for range d.Count() {
			p.Topics = append(p.Topics, d.String())
		}
		p.Plain = append([]byte(nil), d.Bytes()...)
		if d.Err() != nil {
			break
		}
		h.memory.Add(p)
	}
	if d.Bool() { // some had not been given it all
		h.startOver()
	}
	for range d.Count() {
		s := late.Start{ID: d.String(), Process: late.Process(d.Uint()), At: now.Add(-d.Duration())}
		if d.Err() != nil {
			break
		}
		h.processes.SignedIn(s)
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("recent publications: %w", err)
	}
	return nil
}

// setFrozen keeps records out: what was written down must not be numbered twice.
func (o *outbox) setFrozen(on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.frozen = on
}

func (o *outbox) exportTo(e *handover.Encoder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropExcess()
	e.Uint(o.next)
	e.Int(len(o.recs))
	for _, r := range o.recs {
		e.Duration(o.now().Sub(r.at))
		e.Bytes(r.buf)
	}
}

func (o *outbox) restoreFrom(d *handover.Decoder) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := d.Uint()
	n := d.Count()
	if d.Err() == nil && (next == 0 || uint64(n) >= next) {
		d.Fail("records before the first")
	}
	now := o.now()
	for i := range n {
		r := record{at: now.Add(-d.Duration()), buf: append([]byte(nil), d.Bytes()...), seq: next - uint64(n-i)}
		if len(r.buf) < headerSize {
			d.Fail("record")
		}
		if d.Err() != nil {
			return
		}
		o.recs = append(o.recs, r)
		o.bytes += len(r.buf)
	}
	if d.Err() == nil {
		o.next = next
	}
}

func (i *inbox) exportTo(e *handover.Encoder) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e.Int(len(i.origins))
	for id, o := range i.origins {
		o.mu.Lock()
		e.String(string(id))
		e.String(o.run)
		e.Uint(o.seq)
		o.mu.Unlock()
	}
}

func (i *inbox) restoreFrom(d *handover.Decoder) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for range d.Count() {
		id := node.ID(d.String())
		o := &origin{run: d.String(), seq: d.Uint()}
		o.heard.Store(i.beats.sinceStart(i.beats.now())) // or some seconds before, which is not known
		i.origins[id] = o
	}
}

// waitThaw waits out a freeze, which leave allows; false: another process has taken over, or ctx has ended.
func (i *inbox) waitThaw(ctx context.Context) bool {
	if i.gate.Acquire(ctx, 1) != nil {
		return false
	}
	if i.handed {
		i.leave()
		return false
	}
	return true
}

func (i *inbox) leave() { i.gate.Release(1) }
