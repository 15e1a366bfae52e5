package edge

import (
	"context"
	"fmt"
	"math"
	"time"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
)

// Freeze stops accepting and reading, at whatever byte each connection is;
// answers still go out. It fails, and leaves everything as it was, when ctx
// ends before all stand still.
func (e *ReqEdge) Freeze(ctx context.Context) error {
	if err := e.freezer.Begin(); err != nil {
		return err
	}
	err := e.listener.Stop(ctx)
	if err == nil {
		err = netconn.AwaitReaders(ctx, e.freezer, "requests", e.conns.All())
	}
	if err != nil {
		e.Thaw()
	}
	return err
}

// Export also stops output, and writes the connections down. Answers given
// from now on wait for Thaw or Hand.
func (e *ReqEdge) Export(ctx context.Context) (State, error) {
	if !e.freezer.Freezing() {
		return State{}, netconn.ErrNotFrozen
	}
	all := e.conns.All()
	for _, c := range all {
		c.Mu.Lock()
		c.FreezeOutput(len(c.out) > 0)
		c.Mu.Unlock()
	}
	if err := e.freezer.Await(ctx, "slow readers", func() bool { return e.writers.Load() == 0 }); err != nil {
		return State{}, err
	}
	now := netconn.Clock()
	body := &handover.Encoder{}
	var st State
	e.answers.owed.Store(0)
	for _, c := range all {
		if fd, ok := c.encode(body, now, uint64(len(st.Descriptors))); ok {
			st.Descriptors = append(st.Descriptors, fd)
		}
	}
	head := beginRecord(reqSide, len(st.Descriptors))
	st.Record = append(head.Record(), body.Record()...)
	return st, nil
}

// encode writes a connection down. false: it is about to end.
func (c *reqConn) encode(e *handover.Encoder, now int64, number uint64) (fd int, ok bool) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if fd, ok = c.Conn.Encode(e, now); !ok {
		return 0, false
	}
	c.number = number
	e.Bool(c.wire != nil)
	if c.wire != nil {
		e.Uint(uint64(c.wire.transport()))
		c.wire.encode(e)
	}
	midway, age := c.share.Progress.Age(now, c.edge.cfg.MessageTimeout)
	e.Bool(midway)
	e.Duration(age)
	e.Chain(c.out)
	c.edge.answers.owed.Add(int64(len(c.asked)))
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
	return fd, true
}

// Thaw lets everything continue as if nothing had happened.
func (e *ReqEdge) Thaw() {
	e.listener.Start()
	for _, c := range e.conns.All() {
		c.Mu.Lock()
		if c.ThawOutput() && len(c.out) > 0 && !c.Closed() {
			c.block()
		}
		c.Mu.Unlock()
	}
	e.freezer.Finish(false)
	e.answers.mu.Lock()
	held := e.answers.held
	e.answers.held = nil
	e.answers.mu.Unlock()
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
	now := netconn.Clock()
	for i := range n {
		c := newReqConn(e)
		c.number = uint64(i)
		if err := c.decode(d, st.Descriptors[i], now); err != nil {
			return fmt.Errorf("req edge: connection %d of %d: %w", i, n, err)
		}
		e.listener.Readmit(c.Remote().Addr())
		e.conns.Add(c, func() {})
		e.taken = append(e.taken, c)
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("req edge: %w", err)
	}
	return nil
}

func (c *reqConn) decode(d *handover.Decoder, fd int, now int64) error {
	if err := c.Conn.Decode(d, fd, now, c.edge.listener); err != nil {
		return err
	}
	if d.Bool() {
		var err error
		t := Transport(d.Int(int(transports) - 1))
		if c.wire, err = decodeReqWire(t, d, &c.edge.cfg, c.Ready()); err != nil {
			return err
		}
		c.shortIdle.Store(t == WS)
		c.edge.metrics.speaking(t, false).Inc()
	}
	begun, age := d.Bool(), d.Duration()
	if begun {
		c.share.Progress.Resume(now, age, c.edge.cfg.MessageTimeout)
	}
	if out := d.Bytes(); len(out) > 0 {
		c.out, c.outBytes = [][]byte{clone(out)}, len(out)
	}
	for i := range d.Count() {
		r := &Request{Remote: c.Remote(), Received: time.Now(), conn: c, envelope: clone(d.Bytes()), number: uint64(i)}
		r.size = int64(d.Int(math.MaxInt64))
		c.asked = append(c.asked, r)
	}
	if d.Bool() {
		c.waiting = &Request{Remote: c.Remote(), conn: c, envelope: clone(d.Bytes()), Body: clone(d.Bytes())}
		c.waiting.Received = time.Now().Add(-d.Duration())
		c.waiting.size = int64(cap(c.waiting.Body) + len(c.waiting.envelope))
		c.rest = clone(d.Bytes())
	}
	if err := d.Err(); err != nil {
		return err
	}
	if !c.Ready() && (c.waiting != nil || len(c.asked) > 0) || c.Ready() && c.wire == nil {
		return fmt.Errorf("request before READY: %w", handover.ErrState)
	}
	c.adopt()
	return nil
}

// adopt counts what a connection that was taken over weighs.
func (c *reqConn) adopt() {
	c.edge.unread.Adopt(&c.share, int64(c.outBytes))
	for _, r := range c.asked {
		c.slots.Force()
		c.edge.slots.Force()
		c.edge.mem.AdoptComplete(r.size)
		c.edge.answers.foreign[foreignKey{c.number, r.number}] = r
	}
	held := int64(0)
	if c.wire != nil {
		held = int64(c.wire.buffered())
	}
	if c.waiting != nil {
		c.paused.Store(true)
		held += c.waiting.size + int64(cap(c.rest))
	}
	if held > 0 && c.Ready() {
		c.holds = true
		c.edge.mem.Adopt(&c.share, held)
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
			c.Enroll()
			if c.wire != nil && e.cfg.Served.refusal(c.wire.transport(), false) != nil {
				c.Cut(netconn.ReasonProtocol) // the options have changed since
			}
			c.Mu.Lock()
			if len(c.out) > 0 {
				c.block()
			}
			c.Mu.Unlock()
			go c.serve()
		}
	}()
}
