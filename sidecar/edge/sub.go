package edge

import (
	"syscall"

	"saltclusterd/sidecar/edge/netconn"
)

// sub is one connection of a PubEdge.
type sub struct {
	netconn.Conn
	wire  subWire // nil: its peer has said nothing yet; the reader's until the connection is ready
	edge  *PubEdge
	shard *shard
	place int // in shard.members; shard.mu
	beat  beat
	since int64 // clock when it connected

	commands commandCount // the reader's

	// Guarded by Mu.
	feed      *feed // of its generation
	q         outq
	queued    int   // whole publications in q of a filtering subscriber
	queuedLen int64 // their bytes
	blocked   bool  // the socket is full; waitForRoom writes
	progress  int64 // clock when a blocked one last took something
	ponging   bool  // a PONG is in q
	owing     int64 // clock when copies for it alone were queued that it has not taken yet; 0: none
	moving          // between two generations

	known    bool   // not a newcomer (any more); shard.mu
	topics   topics // the reader's to change, with shard.mu
	lastSeen uint64 // sequence of the last publication matched; shard.mu
}

// moving is what a rotation does with a subscriber.
type moving struct {
	held  bool  // no publication is written before it is moved
	told  bool  // it got one of the new generation before it is moved, and signs in because of that
	moved int64 // clock when it last got a reason to sign in; 0: never
}

// silentFactor is how many HandshakeTimeouts a subscriber may say nothing at all. One with Salt's tcp transport
// connects, signs in, and only then sends its first byte.
const silentFactor = 6

func (s *sub) serve() {
	defer s.edge.wg.Done()
	defer s.edge.forget(s)
	handshake := s.edge.cfg.HandshakeTimeout
	if s.wire == nil {
		handshake *= silentFactor
	}
	s.LimitHandshake(handshake)
	var err error
	for err == nil {
		if err = s.Follow(s.handleInput); s.StoppedByFreeze(err) {
			err = s.Park(handshake)
		}
	}
	r := s.Ended(err)
	s.Cut(r)
	if s.HandedOver() {
		return
	}
	s.shard.remove(s)
	if s.wire != nil {
		s.edge.metrics.speaking(s.wire.transport(), s.IsSecured()).Dec()
	}
	s.Close()
	s.edge.metrics.Ended(r)
	s.edge.cutLog.Ended(r, s.Remote(), err)
}

// handleInput takes input from the reader.
func (s *sub) handleInput(in []byte) error {
	in, err := s.AfterProxyHeader(in)
	if err != nil || len(in) == 0 {
		return err
	}
	if s.wire == nil {
		if diverts(&s.Conn, in[0], s.edge.front) {
			return s.Divert(s.edge.front, in, silentFactor*s.edge.cfg.HandshakeTimeout)
		}
		if err := s.open(in[0]); err != nil {
			return err
		}
	}
	for len(in) > 0 {
		n, err := s.wire.next(s, in)
		if err != nil {
			return err
		}
		in = in[n:]
	}
	return nil
}

// open begins the transport that the first byte is of.
func (s *sub) open(first byte) error {
	t, err := transportOf(&s.Conn, first, &s.edge.cfg.Served)
	if err != nil {
		return err
	}
	s.wire = newSubWire(t, &s.edge.cfg)
	s.edge.metrics.speaking(t, s.IsSecured()).Inc()
	s.LimitHandshake(s.edge.cfg.HandshakeTimeout)
	if t == ZeroMQ {
		_, err = s.Write(s.edge.hello) // a fresh socket has room for it
	}
	return err
}

// pong answers a PING with an encoded PONG. One answer waits at most: a peer that asks faster than it reads gets fewer.
func (s *sub) pong(encoded []byte) {
	answer := fixed(encoded)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Closed() || s.Frozen() || s.ponging {
		return
	}
	s.ponging = s.blocked
	s.insert(answer)
	if s.held { // the answer alone, at once: a publication would be a reason to sign in
		n, _ := s.Write(encoded)
		if s.took(max(n, 0)); n < len(encoded) {
			s.unhold(netconn.Clock())
		}
	}
	s.flush()
}

// insert puts a command before everything that has not begun. Wants Mu.
func (s *sub) insert(c *chunk) {
	s.edge.mu.Lock()
	s.q.urgent(whole(c))
	s.edge.mu.Unlock()
}

// flush writes what there is, without waiting. Wants Mu.
func (s *sub) flush() {
	if s.Closed() || s.Frozen() || s.blocked || s.held {
		return
	}
	if done, err := s.write(); err != nil {
		s.Cut(netconn.ReasonGone)
	} else if !done {
		s.block()
	}
}

// block has the rest written when the socket has room. Wants Mu.
func (s *sub) block() {
	s.blocked, s.progress = true, netconn.Clock()
	s.edge.blocked.Add(1)
	s.edge.wg.Add(1) // the reader has not ended: closed is false
	go s.waitForRoom()
}

// write gives the socket all it takes. done: nothing is left. Wants Mu.
func (s *sub) write() (done bool, err error) {
	var room [netconn.MaxIOV][]byte
	for {
		iov := s.q.gather(room[:])
		if len(iov) == 0 {
			s.queued, s.queuedLen, s.ponging = 0, 0, false
			return true, nil
		}
		want := 0
		for _, b := range iov {
			want += len(b)
		}
		n, err := s.Write(iov...)
		if n > 0 {
			s.took(n)
		}
		switch {
		case err == syscall.EAGAIN || err == nil && n < want:
			return false, nil
		case err != nil:
			return false, err
		}
	}
}

// took notes that the socket took n bytes.
func (s *sub) took(n int) {
	messages := s.q.advance(n)
	if len(s.q.segs) <= 1 && s.q.open() != nil || len(s.q.segs) == 0 {
		s.owing = 0
	}
	s.edge.count(messages, n)
	if s.blocked {
		s.progress = netconn.Clock()
	}
	if s.q.open() == nil {
		s.queued = max(s.queued-messages, 0)
		s.queuedLen = max(s.queuedLen-int64(n), 0)
	}
}

// waitForRoom writes on behalf of a subscriber whose socket is full, until it
// has caught up or was cut.
func (s *sub) waitForRoom() {
	defer s.edge.wg.Done()
	defer s.Notify()
	defer s.edge.blocked.Add(-1)
	var failure error
	err := s.WriteWhenReady(func() bool {
		s.Mu.Lock()
		defer s.Mu.Unlock()
		if s.Frozen() {
			return true // blocked stays: thawing starts another writer
		}
		var done bool
		done, failure = s.write()
		if done || failure != nil {
			s.blocked = false
			return true
		}
		return false
	})
	if failure != nil || err != nil && !s.OutputFrozen() {
		s.Cut(netconn.ReasonGone)
	}
}

// behind tells whether a blocked subscriber is further behind than allowed.
// Wants Mu.
func (s *sub) behind() bool {
	if o := s.q.oldest(s.feed); o != nil && o.at.base+int64(o.off) < s.feed.lowest.Load() {
		return true
	}
	return s.queued > s.edge.cfg.QueueMessages || s.queued > 1 && s.queuedLen > s.edge.cfg.QueueBytes
}

// lockMatched queues what was published for whom it is, and keeps more from being published: it returns with Mu and
// edge.mu. Between a match and the lock something could be published that is then matched by what the subscriber has
// become meanwhile, and is lost to it or comes twice. Wants shard.mu.
func (s *sub) lockMatched() {
	for {
		s.shard.match()
		s.Mu.Lock()
		s.edge.mu.Lock()
		if s.shard.rec.next.Load() == nil {
			return
		}
		s.edge.mu.Unlock()
		s.Mu.Unlock()
	}
}

// hold keeps output back until the subscriber is moved. One in the middle of something finishes that.
func (s *sub) hold() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.held, s.told = !s.blocked, false
}

// unhold writes what waits for a held subscriber. It cannot read that, and signs in. Wants Mu.
func (s *sub) unhold(now int64) {
	s.held, s.told, s.moved = false, true, now
	s.flush()
}

// move takes the subscriber to another generation: it gets everything of the
// old one up to now, then the nudge unless it signs in already, then the new one. Wants shard.mu.
func (s *sub) move(to *generation, nudge []byte) {
	s.lockMatched()
	defer s.Mu.Unlock()
	s.held = false
	next := to.feed(s.wire.transport())
	if s.Closed() || s.feed == next {
		s.edge.mu.Unlock()
		return
	}
	unfiltered := s.q.open() != nil
	s.q.leave(s.feed)
	if !s.told {
		s.nudge(nudge, unfiltered)
		s.moved = netconn.Clock()
	}
	s.told = false
	if s.feed = next; unfiltered {
		s.q.follow(next)
	}
	s.edge.mu.Unlock()
	s.flush()
}

// nudge queues a publication for this subscriber alone.
func (s *sub) nudge(body []byte, unfiltered bool) {
	topic, subscribed := s.topics.any()
	switch {
	case body == nil, !subscribed:
	case unfiltered:
		s.q.segs = append(s.q.segs, whole(s.encoding().message(body)))
	default:
		s.q.segs = append(s.q.segs, whole(fixed(s.encoding().append(topicFrame(topic), body))))
	}
}

// encoding is how publications look to a subscriber that is ready.
func (s *sub) encoding() *encoding { return &encodings[s.wire.transport()] }
