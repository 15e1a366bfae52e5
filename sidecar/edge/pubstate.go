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
// publishing continues. It fails, and leaves everything as it was, when a
// rotation is under way or ctx ends before all stand still.
func (e *PubEdge) Freeze(ctx context.Context) error {
	if e.rotates() {
		return fmt.Errorf("a rotation is under way: %w", netconn.ErrNotFrozen)
	}
	if err := e.freezer.Begin(); err != nil {
		return err
	}
	err := e.listener.Stop(ctx)
	if err == nil {
		err = netconn.AwaitReaders(ctx, e.freezer, "subscribers", e.conns.All())
	}
	if err != nil {
		e.Thaw()
	}
	return err
}

// leftToNewSide is how much output may be waiting for one subscriber without being
// written before a handover: the other process writes it while it publishes
// already, which is sooner for all subscribers.
const leftToNewSide = 4 << 10

// Export also stops output, and writes the connections down. Whatever calls
// Publish from now on waits.
func (e *PubEdge) Export(ctx context.Context) (State, error) {
	if !e.freezer.Freezing() {
		return State{}, netconn.ErrNotFrozen
	}
	e.mu.Lock()
	e.frozen = true
	e.mu.Unlock()
	for _, h := range e.shards {
		h.mu.Lock()
		h.match()
		h.mu.Unlock()
	}
	all := e.conns.All()
	for _, s := range all {
		s.Mu.Lock()
		if s.q.size() > leftToNewSide {
			s.flush()
		}
		s.FreezeOutput(s.blocked)
		s.Mu.Unlock()
	}
	err := e.freezer.Await(ctx, "slow subscribers", func() bool { return e.blocked.Load() == 0 })
	if err != nil {
		return State{}, err
	}
	now, budget := netconn.Clock(), int(min(e.cfg.QueueBytes, math.MaxInt32))
	body := &handover.Encoder{}
	var st State
	for _, s := range all {
		if fd, ok := s.encode(body, now, &budget); ok {
			st.Descriptors = append(st.Descriptors, fd)
		}
	}
	head := beginRecord(pubSide, len(st.Descriptors))
	st.Record = append(head.Record(), body.Record()...)
	return st, nil
}

// encode writes a subscriber down, with what it has yet to get as flat bytes.
// false: it is about to end, or has more waiting than all together may.
func (s *sub) encode(e *handover.Encoder, now int64, budget *int) (fd int, ok bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if !s.MayHandOver() {
		return 0, false
	}
	pending := s.q.all()
	size := 0
	for _, b := range pending {
		size += len(b)
	}
	if size > *budget {
		s.Cut(netconn.ReasonSlow)
		return 0, false
	}
	*budget -= size
	fd, ok = s.Conn.Encode(e, now)
	e.Bool(s.wire != nil)
	if s.wire != nil {
		e.Uint(uint64(s.wire.transport()))
		s.wire.encode(e)
	}
	e.Duration(time.Duration(now - s.since))
	e.Int(len(s.topics))
	for _, t := range s.topics {
		e.String(t.topic)
		e.Int(t.n)
	}
	e.Int(s.queued)
	e.Chain(pending)
	return fd, ok
}

// Thaw lets everything continue as if nothing had happened.
func (e *PubEdge) Thaw() {
	e.listener.Start()
	for _, s := range e.conns.All() {
		s.Mu.Lock()
		if s.ThawOutput() && s.blocked && !s.Closed() {
			s.block()
		}
		s.Mu.Unlock()
	}
	e.mu.Lock()
	e.frozen = false
	e.cond.Broadcast()
	e.mu.Unlock()
	e.freezer.Finish(false)
	for _, h := range e.shards {
		h.notifyWorker()
	}
}

// Hand closes our descriptors: another process has taken all over. The edge
// is at its end; Close is still due.
func (e *PubEdge) Hand() {
	e.freezer.Finish(true)
	netconn.Wake(e.conns.All())
}

// Import takes over what another process wrote down. It is called before
// Open and touches no descriptor; Open serves them.
func (e *PubEdge) Import(st State) error {
	d, n, err := openRecord(pubSide, st)
	if err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	now := netconn.Clock()
	for i := range n {
		s := &sub{edge: e, shard: e.shards[int(e.turn.Add(1))%len(e.shards)]}
		if err := s.decode(d, st.Descriptors[i], now); err != nil {
			return fmt.Errorf("pub edge: connection %d of %d: %w", i, n, err)
		}
		e.listener.Readmit(s.Remote().Addr())
		e.conns.Add(s, func() {})
		e.taken = append(e.taken, s)
	}
	if err := d.End(); err != nil {
		return fmt.Errorf("pub edge: %w", err)
	}
	return nil
}

func (s *sub) decode(d *handover.Decoder, fd int, now int64) error {
	if err := s.Conn.Decode(d, fd, now, s.edge.listener); err != nil {
		return err
	}
	if d.Bool() {
		var err error
		t := Transport(d.Int(int(transports) - 1))
		if s.wire, err = decodeSubWire(t, d, &s.edge.cfg, s.Ready()); err != nil {
			return err
		}
		s.edge.metrics.speaking(t, false).Inc()
		if t == WS && s.Ready() {
			s.SetFarewell(s.wsFarewell)
		}
	}
	s.since = now - int64(d.Duration())
	s.known = now-s.since > int64(knownAfter)
	topics := make([]topicCount, d.Count())
	for i := range topics {
		topics[i] = topicCount{d.String(), d.Int(math.MaxInt32)}
	}
	queued, pending := d.Int(math.MaxInt32), d.Bytes()
	if len(topics) > 0 && !s.Ready() || s.Ready() && s.wire == nil {
		d.Fail("subscription before READY")
	}
	if err := d.Err(); err != nil {
		return err
	}
	if len(pending) > 0 { // it begins, perhaps, within a message: nothing may come before it
		flat := whole(fixed(append([]byte(nil), pending...)))
		flat.cont = true
		s.q.segs = append(s.q.segs, flat)
	}
	if !s.Ready() {
		return nil
	}
	s.join() // with a heartbeat of its own: whether an answer was due is not told
	for _, t := range topics {
		s.shard.subscribe(s, t.topic)
		s.topics.count(t.topic, t.n)
	}
	s.queued, s.queuedLen = queued, int64(len(pending))
	return nil
}

// serveTaken writes what was left over and starts the readers, one after the
// other: publications go out meanwhile.
func (e *PubEdge) serveTaken() {
	taken := e.taken
	e.taken = nil
	if len(taken) == 0 {
		return
	}
	e.wg.Add(len(taken) + 1)
	go func() {
		defer e.wg.Done()
		for _, s := range taken {
			s.Enroll()
			if s.wire != nil && e.cfg.Served.refusal(s.wire.transport(), false) != nil {
				s.Cut(netconn.ReasonProtocol) // the options have changed since
			}
			s.Mu.Lock()
			s.flush()
			s.Mu.Unlock()
			go s.serve()
		}
	}()
}

// Conns is the number of connections served.
func (e *PubEdge) Conns() int { return e.conns.Len() }

// rotates tells whether subscribers are on two generations.
func (e *PubEdge) rotates() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.prev != nil
}
