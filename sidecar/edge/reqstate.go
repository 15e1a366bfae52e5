package edge

import (
	"context"
	"fmt"
	"math"
	"time"

	"saltclusterd/sidecar/handover"
)

// Freeze stops accepting and reading, at whatever byte each connection is;
// answers still go out. It fails, and leaves everything as it was, when ctx
// ends before all stand still.
func (e *ReqEdge) Freeze(ctx context.Context) error {
	if err := e.frost.begin(); err != nil {
		return err
	}
	err := e.door.stop(ctx)
	if err == nil {
		err = stand(ctx, e.frost, "requests", e.all())
	}
	if err != nil {
		e.Thaw()
	}
	return err
}

// Export also stops output, and writes the connections down. Answers given
// from now on wait for Thaw or Hand.
func (e *ReqEdge) Export(ctx context.Context) (State, error) {
	if e.frost.state.Load() != freezing {
		return State{}, ErrNotFrozen
	}
	all := e.all()
	for _, c := range all {
		c.mu.Lock()
		c.freeze(len(c.out) > 0)
		c.mu.Unlock()
	}
	if err := e.frost.await(ctx, "slow readers", func() bool { return e.writers.Load() == 0 }); err != nil {
		return State{}, err
	}
	now := clock()
	body := &handover.Encoder{}
	var st State
	e.owed.Store(0)
	for _, c := range all {
		if c.encode(body, now, uint64(len(st.Descriptors))) {
			st.Descriptors = append(st.Descriptors, c.fd)
		}
	}
	head := beginRecord(reqSide, len(st.Descriptors))
	st.Record = append(head.Record(), body.Record()...)
	return st, nil
}

// encode writes a connection down. false: it is about to end.
func (c *reqConn) encode(e *handover.Encoder, now int64, number uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reason() != reasonNone || c.herald != nil { // a peer not introduced yet has to connect again
		return false
	}
	c.handed, c.number = true, number
	c.link.encode(e, now)
	e.Bool(c.inBody)
	e.Bytes(c.envelope)
	midway := c.midway.Load()
	e.Bool(midway != 0)
	e.Duration(max(c.edge.cfg.MessageTimeout-time.Duration(c.due.Load()-now), 0)) // the age of a request that came slowly
	e.Chain(c.out)
	c.edge.owed.Add(int64(len(c.asked)))
	e.Int(len(c.asked))
	for i, r := range c.asked {
		r.number = uint64(i)
		e.Bytes(r.envelope)
		e.Uint(uint64(r.size))
	}
	e.Bool(c.waiting != nil)
	if r := c.waiting; r != nil {
		e.Bytes(r.envelope)
		e.Bytes(r.Body)
		e.Duration(time.Since(r.Received))
		e.Bytes(c.rest)
	}
	return true
}

// Thaw lets everything continue as if nothing had happened.
func (e *ReqEdge) Thaw() {
	e.door.start()
	for _, c := range e.all() {
		c.mu.Lock()
		stood := c.frozen
		c.thaw()
		if stood && len(c.out) > 0 && !c.closed {
			c.block()
		}
		c.mu.Unlock()
	}
	e.frost.finish(false)
	e.heldMu.Lock()
	held := e.held
	e.held = nil
	e.heldMu.Unlock()
	for _, h := range held {
		h.request.over.Store(false)
		if h.body == nil {
			h.request.Drop()
		} else {
			h.request.Reply(h.body)
		}
	}
}

// Import takes over what another process wrote down. It is called before
// Open and touches no descriptor; Open serves them. Whose answers are still
// the other process's to find come by Answer.
func (e *ReqEdge) Import(st State) error {
	d, n, err := openRecord(reqSide, st)
	if err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	now := clock()
	for i := range n {
		c := &reqConn{edge: e, number: uint64(i), slots: gate{limit: e.cfg.MaxInFlightPerConn}}
		if err := c.decode(d, st.Descriptors[i], now); err != nil {
			return fmt.Errorf("req edge: connection %d of %d: %w", i, n, err)
		}
		e.door.readmit(c.remote.Addr())
		e.conns[c] = struct{}{}
		e.taken = append(e.taken, c)
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	return nil
}

func (c *reqConn) decode(d *handover.Decoder, fd int, now int64) error {
	if err := c.link.decode(d, fd, now, &c.edge.cfg.Limits, c.edge.frost); err != nil {
		return err
	}
	c.inBody = d.Bool()
	c.envelope = clone(d.Bytes())
	begun, age := d.Bool(), d.Duration()
	if begun {
		c.midway.Store(max(now-int64(age), 1))
		c.due.Store(now - int64(age) + int64(c.edge.cfg.MessageTimeout))
	}
	if out := d.Bytes(); len(out) > 0 {
		c.out, c.outBytes = [][]byte{clone(out)}, len(out)
	}
	for i := range d.Count() {
		r := &Request{Remote: c.remote, Received: time.Now(), conn: c, envelope: clone(d.Bytes()), number: uint64(i)}
		r.size = int64(d.Int(math.MaxInt64))
		c.asked = append(c.asked, r)
	}
	if d.Bool() {
		c.waiting = &Request{Remote: c.remote, conn: c, envelope: clone(d.Bytes()), Body: clone(d.Bytes())}
		c.waiting.Received = time.Now().Add(-d.Duration())
		c.waiting.size = int64(cap(c.waiting.Body) + len(c.waiting.envelope))
		c.rest = clone(d.Bytes())
	}
	if err := d.Err(); err != nil {
		return err
	}
	if !c.met && (c.waiting != nil || len(c.asked) > 0 || c.inBody || c.envelope != nil) {
		return fmt.Errorf("request before READY: %w", handover.ErrState)
	}
	c.adopt()
	return nil
}

// adopt counts what a connection that was taken over weighs.
func (c *reqConn) adopt() {
	c.edge.unread.Add(int64(c.outBytes))
	for _, r := range c.asked {
		c.slots.force()
		c.edge.slots.force()
		c.edge.mem.used.Add(r.size)
		c.edge.foreign[foreignKey{c.number, r.number}] = r
	}
	held := int64(c.dec.Buffered() + len(c.envelope))
	if c.waiting != nil {
		c.paused.Store(true)
		held += c.waiting.size + int64(cap(c.rest))
	}
	if held > 0 && c.met {
		c.holds = true
		c.edge.mem.adopt(c, held)
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// serveTaken writes what was left over and starts the readers, one after the
// other.
func (e *ReqEdge) serveTaken() {
	taken := e.taken
	e.taken = nil
	if len(taken) == 0 {
		return
	}
	e.wg.Add(len(taken) + 1)
	go func() {
		defer e.wg.Done()
		for _, c := range taken {
			c.socket()
			c.mu.Lock()
			if len(c.out) > 0 {
				c.block()
			}
			c.mu.Unlock()
			go c.serve(true)
		}
	}()
}

// all lists the connections.
func (e *ReqEdge) all() []*reqConn {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := make([]*reqConn, 0, len(e.conns))
	for c := range e.conns {
		all = append(all, c)
	}
	return all
}
