package edge

import (
	"net/netip"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/front"
	"saltclusterd/sidecar/edge/netconn"
)

// Request is one request of a peer.
type Request struct {
	Body     []byte         // the frame behind the envelope; the handler's to keep
	Remote   netip.AddrPort // who asked, as TCP tells
	Received time.Time      // when its last byte was read

	conn     *reqConn
	envelope []byte // encoded, delimiter included
	size     int64  // what it weighs against MaxMemory
	over     atomic.Bool
	lingers  atomic.Bool
	number   uint64 // among its connection's in a State; mu
}

// Identity is who its sender has proved to be by a certificate that was verified.
func (r *Request) Identity() front.Identity { return r.conn.Identity() }

// Reply answers. It never blocks: what the socket does not take at once is
// queued, and a peer that lets its queue grow beyond MaxOutput is cut. body
// must not be changed afterwards. Only the first Reply or Drop counts; when
// the peer has gone nothing happens.
func (r *Request) Reply(body []byte) { r.ReplyLent(body, nil) }

// ReplyLent is Reply with a body that the handler wants to use again: back gets it when its last byte was written. It
// must not block. An answer that is small or never written out is not given back.
func (r *Request) ReplyLent(body []byte, back func([]byte)) {
	if r.over.CompareAndSwap(false, true) && r.conn.reply(r, body, back) {
		r.conn.release(r)
		r.conn.edge.metrics.replies.Inc()
	}
}

// Drop says that no answer will come.
func (r *Request) Drop() {
	if r.over.CompareAndSwap(false, true) && r.conn.drop(r) {
		r.conn.release(r)
	}
}

// Authenticated says that the request is certainly one of that minion. Its connection, and requests from its address,
// are the last that are cut when memory is short.
func (r *Request) Authenticated(minion string) {
	r.known()
	r.conn.edge.mem.Trust(&r.conn.share, minion)
}

// Linger is called before a request waits though it is not certain who has sent it. false: too much waits so already,
// and it should be given up.
func (r *Request) Linger() bool {
	if r.lingers.Load() {
		return true
	}
	if !r.conn.edge.mem.Linger(r.size) {
		r.conn.edge.metrics.crowded.Inc()
		return false
	}
	r.lingers.Store(true)
	return true
}

// known ends that a request lingers.
func (r *Request) known() {
	if r.lingers.CompareAndSwap(true, false) {
		r.conn.edge.mem.EndLinger(r.size)
	}
}

// Refused says that the request was refused, before or after it is answered: too many of them, and less is read from
// where it came.
func (r *Request) Refused() {
	if c := r.conn; c.share.Throttle.Refused(&c.edge.refusals, c.Remote().Addr(), r.size) {
		c.edge.metrics.slowed.Inc()
	}
}

// Gone tells whether the peer has disconnected, as far as is known.
func (r *Request) Gone() bool { return r.conn.Reason() != netconn.ReasonNone }
