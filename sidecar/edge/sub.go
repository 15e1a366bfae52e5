package edge

import (
	"syscall"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// sub is one connection of a PubEdge.
type sub struct {
	zmtpConn
	edge  *PubEdge
	shard *shard
	place int // in shard.members; shard.mu
	beat  beat
	since int64 // clock when it connected

	// Guarded by Mu.
	feed      *feed // of its generation
	q         outq
	queued    int   // whole publications in q of a filtering subscriber
	queuedLen int64 // their bytes
	blocked   bool  // the socket is full; waitForRoom writes
	progress  int64 // clock when a blocked one last took something
	ponging   bool  // a PONG is in q
	owing     int64 // clock when copies for it alone were queued that it has not taken yet; 0: none
	held      bool  // nothing is written before it is moved

	known    bool   // not a newcomer (any more); shard.mu
	topics   topics // the reader's to change, with shard.mu
	lastSeen uint64 // sequence of the last publication matched; shard.mu
}

func (s *sub) serve(greeted bool) {
	defer s.edge.wg.Done()
	defer s.edge.forget(s)
	s.LimitHandshake(s.edge.cfg.HandshakeTimeout)
	var err error
	if !greeted {
		err = s.greet(s.edge.hello)
	}
	for err == nil {
		if err = s.Follow(s.hear); s.StoppedByFreeze(err) {
			err = s.Park(s.edge.cfg.HandshakeTimeout)
		}
	}
	r := s.Ended(protocolError(err))
	s.Cut(r)
	if s.HandedOver() {
		return
	}
	s.shard.remove(s)
	s.Close()
	s.edge.met.Ended(r)
	s.edge.cutLog.Ended(r, s.Remote(), err)
}

// hear takes input from the reader.
func (s *sub) hear(in []byte) error {
	in, err := s.AfterProxyHeader(in)
	if err != nil {
		return err
	}
	for len(in) > 0 {
		ev, n, err := s.dec.Next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		switch {
		case ev.Kind == zmtp.Command && !s.Ready():
			if err = s.meet(ev.Body, "SUB", "XSUB"); err == nil {
				s.join()
			}
		case ev.Kind == zmtp.Command:
			err = s.command(ev.Body)
		case ev.Kind == zmtp.Frame:
			err = s.said(ev)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// said takes a message: a subscription, and nothing else. No minion sends anything else here, so who does speaks as if
// he published.
func (s *sub) said(ev zmtp.Event) error {
	topic, add, ok := zmtp.ParseSubscription(ev.Body)
	if !ok || ev.More {
		return netconn.NewError(netconn.ReasonProtocol, "a message that is not a subscription")
	}
	return s.subscription(topic, add)
}

func (s *sub) command(body []byte) error {
	name, data, err := zmtp.ParseCommand(body)
	if err != nil {
		return err
	}
	switch string(name) {
	case zmtp.CmdSubscribe:
		return s.subscription(data, true)
	case zmtp.CmdCancel:
		return s.subscription(data, false)
	case zmtp.CmdPing:
		_, context, err := zmtp.ParsePing(data)
		if err != nil {
			return err
		}
		s.pong(context)
	}
	return nil
}

// pong answers a PING. One answer waits at most: a peer that asks faster than
// it reads gets fewer.
func (s *sub) pong(context []byte) {
	answer := fixed(zmtp.AppendPong(nil, context))
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Closed() || s.Frozen() || s.ponging {
		return
	}
	s.ponging = s.blocked
	s.held = false // who asks whether we live must not wait
	s.insert(answer)
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
	if o := s.q.open(); o != nil {
		return o.at.base+int64(o.off) < s.feed.lowest.Load()
	}
	return s.queued > s.edge.cfg.QueueMessages || s.queued > 1 && s.queuedLen > s.edge.cfg.QueueBytes
}

// hold keeps output back until the subscriber is moved. One in the middle of something finishes that.
func (s *sub) hold() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.held = !s.blocked
}

// move takes the subscriber to another generation: it gets everything of the
// old one up to now, then the nudge, then the new one.
func (s *sub) move(to *feed, nudge []byte) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.held = false
	if s.Closed() || s.feed == to {
		return
	}
	s.edge.mu.Lock()
	unfiltered := s.q.open() != nil
	s.q.leave(s.feed)
	s.nudge(nudge, unfiltered)
	if s.feed = to; unfiltered {
		s.q.follow(to)
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
		s.q.segs = append(s.q.segs, whole(fixed(zmtp.AppendMessage(nil, body))))
	default:
		s.q.segs = append(s.q.segs, whole(fixed(zmtp.AppendMessage(nil, []byte(topic), body))))
	}
}
