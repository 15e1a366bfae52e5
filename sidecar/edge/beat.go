package edge

import (
	"math/rand/v2"
	"time"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// beat is the heartbeat of one subscriber; the shard worker's.
type beat struct {
	next  int64 // clock of the next PING
	asked int64 // clock of the PING not answered yet, 0: none
}

// start spreads the first PINGs of subscribers that came together.
func (b *beat) start(now int64, every time.Duration) {
	b.next = now + rand.Int64N(int64(every)) + 1
}

func (b *beat) again(now int64, every time.Duration) {
	b.next = now + int64(every)*4/5 + rand.Int64N(int64(every)*2/5+1)
}

// beatInterval is how often a shard looks at its subscribers.
func (e *PubEdge) beatInterval() time.Duration {
	return min(max(min(e.cfg.Heartbeat, e.cfg.HeartbeatTimeout)/16, 5*time.Millisecond), 500*time.Millisecond)
}

// checkBeats sends a sign of life to who is due, and cuts who is silent,
// stalled, or behind while nothing is published.
func (h *shard) checkBeats(now int64) {
	if h.edge.freezer.On() {
		return
	}
	h.mu.Lock()
	h.copyMembers()
	h.mu.Unlock()
	timeout := int64(h.edge.cfg.HeartbeatTimeout)
	for _, s := range h.walk {
		b := &s.beat
		heard := s.Heard()
		if b.asked != 0 && heard >= b.asked {
			b.asked = 0
		}
		if b.asked != 0 && now-b.asked > timeout {
			s.Cut(netconn.ReasonSilent)
			continue
		}
		var sign *chunk
		if b.asked == 0 && now >= b.next {
			b.again(now, h.edge.cfg.Heartbeat)
			sign = h.signOfLife(s)
		}
		h.checkOutput(s, now, sign)
	}
}

// checkOutput cuts a subscriber that takes nothing, and sends it a sign of life, if one is due.
func (h *shard) checkOutput(s *sub, now int64, sign *chunk) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.Frozen() || s.held {
		return
	}
	// Copies are queued for this subscriber alone: if it read them byte by byte, it would hold as much memory as it likes.
	if timeout := int64(h.edge.cfg.HeartbeatTimeout); s.blocked &&
		(now-s.progress > timeout || s.owing != 0 && now-s.owing > timeout) {
		s.Cut(netconn.ReasonStalled)
		return
	}
	if sign == nil || s.Closed() {
		return
	}
	if s.wire.pings() {
		s.beat.asked = now
	} else if s.blocked { // it answers nothing that would tell when it takes the next one
		return
	}
	s.insert(sign)
	s.flush()
}

// encodedPing tells the peer after what silence of ours to give up.
func encodedPing(cfg PubConfig) *chunk {
	return fixed(zmtp.AppendPing(nil, cfg.Heartbeat+cfg.HeartbeatTimeout, nil))
}
