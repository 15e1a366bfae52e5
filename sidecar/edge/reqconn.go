package edge

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/budget"
	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/zmtp"
)

// plainEnvelope is the encoded envelope of a REQ peer: an empty frame.
var plainEnvelope = zmtp.AppendFrame(nil, nil, true)

// maxEnvelope bounds the encoded envelope of a request. A device in between
// adds an identity of at most 255 bytes.
const maxEnvelope = 2 << 10

// endCheckAfter is the silence after which a connection is looked at once for
// an end that follow missed.
const endCheckAfter = int64(time.Second)

// errPaused leaves follow when a request found no free place.
var errPaused = errors.New("waiting for a place")

// reqConn is one connection of a ReqEdge.
type reqConn struct {
	netconn.Conn
	edge  *ReqEdge
	slots budget.Places // requests in flight of this connection
	share budget.Share

	number uint64 // in a State; Mu

	// The reader's own.
	wire     reqWire // nil: its peer has said nothing yet
	holds    bool    // it holds some of the common memory
	commands commandCount
	waiting  *Request // complete, but without a place yet
	rest     []byte   // input behind it

	answered atomic.Int64 // clock of the last answer
	paused   atomic.Bool  // waiting is set
	// shortIdle says that the connection is done with when its request is answered.
	shortIdle atomic.Bool
	looked    bool // the sweeper's: checked for a missed end since heard

	// Output, guarded by Mu.
	out      [][]byte // encoded, not yet taken by the socket
	outBytes int
	loans    []loan
	asked    []*Request // dispatched and not answered
}

func newReqConn(e *ReqEdge) *reqConn {
	c := &reqConn{edge: e, slots: budget.NewPlaces(e.cfg.MaxInFlightPerConn)}
	c.share.Init(&c.Conn)
	return c
}

func (c *reqConn) serve() {
	defer c.edge.wg.Done()
	defer c.edge.forget(c)
	c.LimitHandshake(c.edge.cfg.HandshakeTimeout)
	var err error
	for err == nil {
		if c.waiting != nil {
			err = c.resume()
		} else if err = c.Follow(c.handleInput); errors.Is(err, errPaused) {
			err = nil
		}
		if c.StoppedByFreeze(err) {
			err = c.Park(c.edge.cfg.HandshakeTimeout)
		}
	}
	if c.Reason() == netconn.ReasonNone && errors.Is(err, os.ErrDeadlineExceeded) && c.Ready() {
		<-c.edge.drained // Close stops reading before it stops answering
		err = ErrClosed
		c.Cut(netconn.ReasonClosed)
	}
	r := c.Ended(err)
	c.Cut(r)
	if c.HandedOver() {
		return
	}
	_ = c.hold(0)
	if c.wire != nil {
		c.edge.metrics.speaking(c.wire.transport(), c.IsSecured()).Dec()
	}
	c.Close()
	c.Mu.Lock()
	c.dropOutput()
	c.Mu.Unlock()
	c.edge.metrics.Ended(r)
	c.edge.cutLog.Ended(r, c.Remote(), err)
}

// stackRoom is what a request needs of its reader's stack, about.
const stackRoom = 5 << 10

// stretch makes the goroutine's stack large enough in one step while little is on it. The collector takes away from
// those that wait, and to double it again and again, deep inside of a request, costs several times as much.
//
//go:noinline
func stretch(i int) byte {
	var room [stackRoom]byte
	return room[i&1]
}

// handleInput takes input from the reader.
func (c *reqConn) handleInput(in []byte) error {
	stretch(len(in))
	in, err := c.AfterProxyHeader(in)
	if err != nil {
		return err
	}
	read := len(in)
	if read == 0 {
		return nil
	}
	if c.wire == nil {
		if diverts(&c.Conn, in[0], c.edge.front) {
			return c.Divert(c.edge.front, in, c.edge.cfg.HandshakeTimeout)
		}
		if err := c.open(in[0]); err != nil {
			return err
		}
	}
	for len(in) > 0 {
		n, err := c.wire.next(c, in)
		in = in[n:]
		if errors.Is(err, errPaused) {
			c.rest = append([]byte(nil), in...)
			if full := c.hold(c.waiting.size + int64(cap(c.rest))); full != nil {
				err = full
			}
		}
		if err != nil {
			return err
		}
	}
	return c.account(read)
}

// open begins the transport that the first byte is of.
func (c *reqConn) open(first byte) error {
	t, err := transportOf(&c.Conn, first, &c.edge.cfg.Served)
	if err != nil {
		return err
	}
	c.wire = newReqWire(t, &c.edge.cfg)
	c.edge.metrics.speaking(t, c.IsSecured()).Inc()
	switch t {
	case ZeroMQ:
		_, err = c.Write(c.edge.hello) // a fresh socket has room for it
	case TCP:
		c.SetReady()
	case WS:
		c.shortIdle.Store(true)
	}
	return err
}

// account notes what an incomplete message costs, after a read of so many bytes.
func (c *reqConn) account(read int) error {
	if !c.wire.midway() {
		c.share.Progress.End()
		return c.hold(0)
	}
	c.share.Progress.Add(read, c.edge.cfg.MessageTimeout)
	return c.hold(int64(c.wire.buffered()))
}

// hold sets what the connection holds of the common memory.
func (c *reqConn) hold(size int64) error {
	if size == 0 && !c.holds {
		return nil
	}
	c.holds = size > 0
	return c.edge.mem.Hold(&c.share, size)
}

// request takes a complete request. owned: body may be kept.
func (c *reqConn) request(body []byte, owned bool, envelope []byte) error {
	if !owned {
		body = append(make([]byte, 0, len(body)), body...)
	}
	r := &Request{Body: body, Remote: c.Remote(), Received: time.Now(), conn: c, envelope: envelope,
		size: int64(cap(body) + len(envelope))}
	c.share.Progress.End()
	if c.share.Throttle.Active() || !c.slots.Try() {
		c.await(r)
		return errPaused
	}
	if !c.edge.slots.Try() {
		c.slots.Release()
		c.await(r)
		return errPaused
	}
	return c.dispatch(r)
}

// await keeps a request until there is a place for it.
func (c *reqConn) await(r *Request) {
	c.waiting = r
	c.paused.Store(true)
}

// dispatch gives the handler a request that has got its places, if there is memory for it.
func (c *reqConn) dispatch(r *Request) error {
	held := c.holds
	c.holds = false
	if err := c.edge.mem.Complete(&c.share, r.size, held); err != nil {
		c.edge.slots.Release()
		c.slots.Release()
		return err
	}
	c.Mu.Lock()
	c.asked = append(c.asked, r)
	c.Mu.Unlock()
	c.edge.metrics.requests.Inc()
	c.edge.cfg.Handler.ServeReq(c.edge.ctx, r)
	return nil
}

// resume waits for a place for the request that had none, dispatches it and
// continues with the input behind it. Meanwhile nothing is read: TCP tells the
// peer to wait.
func (c *reqConn) resume() error {
	for c.waiting != nil {
		stop := c.FreezeBegun()
		if !c.share.Throttle.Wait(c.Done(), stop) {
			return c.interrupted()
		}
		if !c.slots.Wait(c.Done(), stop) {
			return c.interrupted()
		}
		if !c.edge.slots.Wait(c.Done(), stop) {
			c.slots.Release()
			return c.interrupted()
		}
		r, rest := c.waiting, c.rest
		c.waiting, c.rest = nil, nil
		if err := c.dispatch(r); err != nil {
			return err
		}
		c.paused.Store(false)
		if err := c.handleInput(rest); err != nil && !errors.Is(err, errPaused) {
			return err
		}
	}
	return nil
}

// interrupted is why a wait for a place ended without one.
func (c *reqConn) interrupted() error {
	if c.Reason() != netconn.ReasonNone {
		return netconn.ErrCut
	}
	return netconn.ErrFrozen
}

// release ends a request that took a place.
func (c *reqConn) release(r *Request) {
	r.known()
	c.edge.mem.Release(r.size)
	c.edge.slots.Release()
	c.slots.Release()
}

// idles tells whether nothing was asked or answered for too long.
func (c *reqConn) idles(now, heard int64) bool {
	if c.shortIdle.Load() && now-max(heard, c.answered.Load()) > int64(wsIdle) {
		return true
	}
	return c.edge.cfg.IdleTimeout > 0 && now-heard > int64(c.edge.cfg.IdleTimeout)
}

// check is the sweeper's look at a connection.
func (c *reqConn) check(now int64) {
	heard := c.Heard()
	switch {
	case c.share.Progress.Late(now):
		c.Cut(netconn.ReasonSlowMessage)
	case c.idles(now, heard) && c.slots.Used() == 0:
		c.Cut(netconn.ReasonIdle)
	case now-heard < endCheckAfter:
		c.looked = false
	case !c.looked:
		c.looked = true
		if c.EndReached() {
			c.Cut(netconn.ReasonGone)
		}
	}
}
