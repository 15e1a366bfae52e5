package edge

import (
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"saltclusterd/sidecar/edge/netconn"
)

// smallReply is up to where a reply is copied behind its header, which is
// cheaper than describing two buffers to the kernel.
const smallReply = 16 << 10

// replyHead is what stands before a reply in any transport at most, beside the envelope.
const replyHead = 16

var replyRooms = sync.Pool{New: func() any {
	b := make([]byte, 0, smallReply+maxEnvelope+replyHead)
	return &b
}}

// loan is an answer in memory that its maker wants back.
type loan struct {
	left int // bytes of output up to its end
	body []byte
	back func([]byte)
}

// reply sends the answer to r as one message. false: the connection stands
// still, and the edge keeps the answer. back may be nil.
func (c *reqConn) reply(r *Request, body []byte, back func([]byte)) bool {
	if body == nil {
		body = []byte{} // nil means a drop
	}
	if len(body) > smallReply {
		head := c.wire.appendReplyHead(make([]byte, 0, len(r.envelope)+replyHead), r.envelope, len(body))
		c.Mu.Lock()
		defer c.Mu.Unlock()
		if !c.settle(r, body) {
			return false
		}
		c.sendLocked(head, body)
		c.lend(body, back)
		return true
	}
	room := replyRooms.Get().(*[]byte)
	defer replyRooms.Put(room)
	b := append(c.wire.appendReplyHead((*room)[:0], r.envelope, len(body)), body...)
	*room = b
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if !c.settle(r, body) {
		return false
	}
	if c.Closed() || c.Reason() != netconn.ReasonNone {
		return true
	}
	if len(c.out) > 0 {
		c.queue(append([]byte(nil), b...))
	} else if n := c.tryWrite(b); n < len(b) {
		c.queue(append([]byte(nil), b[n:]...))
	}
	return true
}

// lend notes that an answer which was just sent is to be given back; what is
// left of it is at the end of the output. Wants Mu.
func (c *reqConn) lend(body []byte, back func([]byte)) {
	switch {
	case back == nil:
	case c.outBytes == 0:
		back(body)
	default:
		c.loans = append(c.loans, loan{c.outBytes, body, back})
	}
}

// giveBack returns the answers that the next n bytes of output end. Wants Mu.
func (c *reqConn) giveBack(n int) {
	for i := range c.loans {
		c.loans[i].left -= n
	}
	for len(c.loans) > 0 && c.loans[0].left <= 0 {
		c.loans[0].back(c.loans[0].body)
		c.loans = slices.Delete(c.loans, 0, 1)
	}
}

// drop ends a request without an answer; false as with reply.
func (c *reqConn) drop(r *Request) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	return c.settle(r, nil)
}

// settle takes a request off the list of those not answered, unless the
// connection stands still. Wants Mu.
func (c *reqConn) settle(r *Request, body []byte) bool {
	c.answered.Store(netconn.Clock())
	if i := slices.Index(c.asked, r); i >= 0 && !c.Frozen() {
		c.asked = slices.Delete(c.asked, i, i+1)
	}
	if c.Frozen() {
		c.edge.hold(r, body)
	}
	return !c.Frozen()
}

// send sends buffers, which the connection keeps if the socket is full.
func (c *reqConn) send(bufs ...[]byte) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.sendLocked(bufs...)
}

// sendLocked is send for who has Mu.
func (c *reqConn) sendLocked(bufs ...[]byte) {
	if c.Closed() || c.Reason() != netconn.ReasonNone {
		return
	}
	if len(c.out) == 0 {
		bufs = consume(bufs, c.tryWrite(bufs...))
	}
	if len(bufs) > 0 {
		c.queue(bufs...)
	}
}

// tryWrite writes what the socket takes now. A socket that failed takes
// everything: the reader gets the error.
func (c *reqConn) tryWrite(bufs ...[]byte) int {
	n, err := c.Write(bufs...)
	c.edge.metrics.Sent(n)
	if err != nil && err != syscall.EAGAIN {
		c.Cut(netconn.ReasonGone)
		for _, b := range bufs {
			n += len(b)
		}
	}
	return n
}

// queue keeps output for later and makes sure that a goroutine writes it.
func (c *reqConn) queue(bufs ...[]byte) {
	first, size := len(c.out) == 0, 0
	for _, b := range bufs {
		size += len(b)
	}
	if !first && c.outBytes+size > c.edge.cfg.MaxOutput || !c.edge.unread.TakeRoom(&c.share, int64(size)) {
		c.Cut(netconn.ReasonOutput)
		return
	}
	c.outBytes += size
	if c.out = append(c.out, bufs...); first {
		c.block()
	}
}

// dropOutput discards queued output that will not be sent any more. Wants Mu.
func (c *reqConn) dropOutput() {
	c.edge.unread.GiveBack(&c.share, int64(c.outBytes))
	c.out, c.outBytes, c.loans = nil, 0, nil
}

// block has the output written when the socket has room. Wants Mu.
func (c *reqConn) block() {
	c.edge.writers.Add(1)
	c.edge.wg.Add(1) // the reader has not ended: closed is false
	go c.drainOutput()
}

// drainOutput writes while the socket is full, and ends with the queue.
func (c *reqConn) drainOutput() {
	defer c.edge.wg.Done()
	defer c.Notify()
	defer c.edge.writers.Add(-1)
	c.Mu.Lock()
	c.extendOutput()
	c.Mu.Unlock()
	var failure error
	err := c.WriteWhenReady(func() bool {
		var done bool
		done, failure = c.writeSome()
		return done
	})
	if failure != nil || err != nil && !c.OutputFrozen() {
		r := netconn.ReasonGone
		if os.IsTimeout(err) {
			r = netconn.ReasonOutput
		}
		c.Cut(r)
	}
}

// extendOutput gives the peer another OutputTimeout to read something. Wants
// mu.
func (c *reqConn) extendOutput() {
	c.SetWriteDeadline(time.Now().Add(c.edge.cfg.OutputTimeout))
}

func (c *reqConn) writeSome() (done bool, err error) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.Frozen() {
		return true, nil // the output stays: thawing starts another writer
	}
	for len(c.out) > 0 {
		n, err := c.Write(c.out...)
		c.outBytes -= n
		c.edge.unread.GiveBack(&c.share, int64(n))
		c.edge.metrics.Sent(n)
		c.out = consume(c.out, n)
		c.giveBack(n)
		switch {
		case err == syscall.EAGAIN && n == 0:
			return false, nil
		case err == syscall.EAGAIN || err == nil:
			c.extendOutput()
		default:
			c.dropOutput()
			return true, err
		}
	}
	c.out = nil
	return true, nil
}

// consume drops the first n bytes of a list of buffers.
func consume(bufs [][]byte, n int) [][]byte {
	for len(bufs) > 0 && n >= len(bufs[0]) {
		n -= len(bufs[0])
		bufs[0] = nil
		bufs = bufs[1:]
	}
	if n > 0 {
		bufs[0] = bufs[0][n:]
	}
	return bufs
}
