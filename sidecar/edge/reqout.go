package edge

import (
	"os"
	"sync"
	"syscall"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// smallReply is up to where a reply is copied behind its header, which is
// cheaper than describing two buffers to the kernel.
const smallReply = 16 << 10

var replyRooms = sync.Pool{New: func() any { b := make([]byte, 0, smallReply+maxEnvelope+zmtp.MaxFrameHeader); return &b }}

// reply sends envelope and body as one message.
func (c *reqConn) reply(envelope, body []byte) {
	if c.reason() != reasonNone {
		return
	}
	if len(body) > smallReply {
		head := append(make([]byte, 0, len(envelope)+zmtp.MaxFrameHeader), envelope...)
		c.send(zmtp.AppendFrameHeader(head, len(body), false), body)
		return
	}
	room := replyRooms.Get().(*[]byte)
	defer replyRooms.Put(room)
	b := zmtp.AppendFrame(append((*room)[:0], envelope...), body, false)
	*room = b
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if len(c.out) > 0 {
		c.queue(append([]byte(nil), b...))
	} else if n := c.tryWrite(b); n < len(b) {
		c.queue(append([]byte(nil), b[n:]...))
	}
}

// send sends buffers, which the connection keeps if the socket is full.
func (c *reqConn) send(bufs ...[]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
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
// everything: the reader will hear of it.
func (c *reqConn) tryWrite(bufs ...[]byte) int {
	n, err := writeNow(c.fd, bufs)
	c.edge.met.sent.Add(float64(n))
	if err != nil && err != syscall.EAGAIN {
		c.cut(ReasonGone)
		for _, b := range bufs {
			n += len(b)
		}
	}
	return n
}

// queue keeps output for later and sees that somebody writes it.
func (c *reqConn) queue(bufs ...[]byte) {
	first, before := len(c.out) == 0, c.outBytes
	for _, b := range bufs {
		c.outBytes += len(b)
	}
	if !first && c.outBytes > c.edge.cfg.MaxOutput {
		c.outBytes = before
		c.cut(ReasonOutput)
		return
	}
	if c.out = append(c.out, bufs...); !first {
		return
	}
	c.edge.writers.Add(1)
	c.edge.wg.Add(1) // the reader has not ended: closed is false
	go c.drainOutput()
}

// drainOutput writes while the socket is full, and ends with the queue.
func (c *reqConn) drainOutput() {
	defer c.edge.wg.Done()
	defer c.edge.writers.Add(-1)
	c.extendOutput()
	var failure error
	err := c.raw.Write(func(uintptr) bool {
		var done bool
		done, failure = c.writeSome()
		return done
	})
	if err != nil || failure != nil {
		r := ReasonGone
		if os.IsTimeout(err) {
			r = ReasonOutput
		}
		c.cut(r)
	}
}

// extendOutput gives the peer another OutputTimeout to read something.
func (c *reqConn) extendOutput() {
	_ = c.tcp.SetWriteDeadline(time.Now().Add(c.edge.cfg.OutputTimeout))
	if c.reason() != reasonNone {
		_ = c.tcp.SetWriteDeadline(longAgo)
	}
}

func (c *reqConn) writeSome() (done bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.out) > 0 {
		n, err := writeNow(c.fd, c.out)
		c.outBytes -= n
		c.edge.met.sent.Add(float64(n))
		c.out = consume(c.out, n)
		switch {
		case err == syscall.EAGAIN && n == 0:
			return false, nil
		case err == syscall.EAGAIN || err == nil:
			c.extendOutput()
		default:
			c.out, c.outBytes = nil, 0
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
