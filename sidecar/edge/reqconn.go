package edge

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// plainEnvelope is the encoded envelope of a REQ peer: an empty frame.
var plainEnvelope = zmtp.AppendFrame(nil, nil, true)

// maxEnvelope bounds the encoded envelope of a request. A device in between
// adds an identity of at most 255 bytes.
const maxEnvelope = 2 << 10

// minRate is the bytes per second at which a request may come for as long as it likes.
const minRate = 64 << 10

// endCheckAfter is the silence after which a connection is looked at once for
// an end that follow missed.
const endCheckAfter = int64(time.Second)

// errPaused leaves follow when a request found no free place.
var errPaused = errors.New("waiting for a place")

// reqConn is one connection of a ReqEdge.
type reqConn struct {
	link
	edge  *ReqEdge
	slots gate // requests in flight of this connection
	blame slowed

	number uint64 // in a State; mu

	// The reader's own.
	envelope []byte   // of the message being read
	inBody   bool     // the envelope is complete
	holds    bool     // it has a holding
	waiting  *Request // complete, but without a place yet
	rest     []byte   // input behind it

	holding  holding      // mem.mu
	trusted  atomic.Int64 // clock when a request on it was authenticated, see trustAgain; 0: none was
	answered atomic.Int64 // clock of the last answer
	midway   atomic.Int64 // clock when the incomplete message began, 0: none
	due      atomic.Int64 // clock when it is too late for more of that message
	paused   atomic.Bool  // waiting is set
	looked   bool         // the sweeper's: checked for a missed end since heard

	// Output, guarded by link.mu.
	out      [][]byte // encoded, not yet taken by the socket
	outBytes int
	loans    []loan
	asked    []*Request // dispatched and not answered
}

func (c *reqConn) serve(greeted bool) {
	defer c.edge.wg.Done()
	defer c.edge.forget(c)
	c.setReadDeadline(c.readDeadline(c.edge.cfg.HandshakeTimeout))
	var err error
	if !greeted {
		err = c.greet(c.edge.hello)
	}
	for err == nil {
		if c.waiting != nil {
			err = c.resume()
		} else if err = c.follow(c.hear); errors.Is(err, errPaused) {
			err = nil
		}
		if c.frosted(err) {
			err = c.park(c.edge.cfg.HandshakeTimeout)
		}
	}
	if c.reason() == reasonNone && errors.Is(err, os.ErrDeadlineExceeded) && c.met {
		<-c.edge.drained // Close stops reading before it stops answering
		err = ErrClosed
		c.cut(ReasonClosed)
	}
	r := c.ended(err)
	c.cut(r)
	if c.frost.park(&c.stance) != nil {
		c.abandon()
		return
	}
	_ = c.hold(0)
	c.close()
	c.mu.Lock()
	c.dropOutput()
	c.mu.Unlock()
	c.edge.met.ended(r)
	c.edge.cry.say(r, c.remote, err)
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

// hear takes input from the reader.
func (c *reqConn) hear(in []byte) error {
	stretch(len(in))
	in, err := c.introduced(in)
	if err != nil {
		return err
	}
	read := len(in)
	for len(in) > 0 {
		ev, n, err := c.dec.Next(in)
		if err != nil {
			return err
		}
		in = in[n:]
		if ev.Kind != zmtp.None {
			if err = c.event(ev); err != nil {
				if errors.Is(err, errPaused) {
					c.rest = append([]byte(nil), in...)
					if full := c.hold(c.waiting.size + int64(cap(c.rest))); full != nil {
						err = full
					}
				}
				return err
			}
		}
	}
	return c.account(read)
}

// account notes what an incomplete message costs, after a read of so many bytes.
func (c *reqConn) account(read int) error {
	if !c.dec.Midway() {
		if c.midway.Load() != 0 {
			c.midway.Store(0)
		}
		return c.hold(0)
	}
	now := clock()
	if c.midway.Load() == 0 {
		c.midway.Store(now)
		c.due.Store(now + int64(c.edge.cfg.MessageTimeout))
	} else {
		more := int64(read) * int64(time.Second) / minRate
		c.due.Store(min(c.due.Load()+more, now+int64(c.edge.cfg.MessageTimeout)))
	}
	return c.hold(int64(c.dec.Buffered() + len(c.envelope)))
}

// hold sets what the connection holds of the common memory.
func (c *reqConn) hold(size int64) error {
	if size == 0 && !c.holds {
		return nil
	}
	c.holds = size > 0
	return c.edge.mem.hold(c, size)
}

func (c *reqConn) event(ev zmtp.Event) error {
	switch {
	case ev.Kind == zmtp.Frame:
		return c.frame(ev)
	case ev.Kind == zmtp.Command && !c.met:
		return c.meet(ev.Body, "REQ", "DEALER")
	case ev.Kind == zmtp.Command:
		return c.command(ev.Body)
	}
	return nil
}

func (c *reqConn) command(body []byte) error {
	name, data, err := zmtp.ParseCommand(body)
	if err != nil || string(name) != zmtp.CmdPing {
		return err
	}
	_, context, err := zmtp.ParsePing(data)
	if err != nil {
		return err
	}
	c.send(zmtp.AppendPong(nil, context))
	return nil
}

// frame collects the envelope and dispatches the body behind it.
func (c *reqConn) frame(ev zmtp.Event) error {
	if c.inBody {
		if ev.More {
			return &cutError{ReasonProtocol, "more than one frame behind the envelope"}
		}
		return c.request(ev)
	}
	c.inBody = len(ev.Body) == 0
	switch {
	case !ev.More:
		return &cutError{ReasonProtocol, "no body behind the envelope"}
	case c.inBody && c.envelope == nil:
		c.envelope = plainEnvelope
	default:
		if len(c.envelope)+len(ev.Body)+zmtp.MaxFrameHeader > maxEnvelope {
			return &cutError{ReasonLimit, "envelope too long"}
		}
		c.envelope = zmtp.AppendFrame(c.envelope, ev.Body, true)
	}
	return nil
}

func (c *reqConn) request(ev zmtp.Event) error {
	body := ev.Body
	if !ev.Owned {
		body = append(make([]byte, 0, len(body)), body...)
	}
	r := &Request{Body: body, Remote: c.remote, Received: time.Now(), conn: c, envelope: c.envelope,
		size: int64(cap(body) + len(c.envelope))}
	c.envelope, c.inBody = nil, false
	if c.midway.Load() != 0 {
		c.midway.Store(0)
	}
	if c.owes() || !c.slots.try() {
		c.await(r)
		return errPaused
	}
	if !c.edge.slots.try() {
		c.slots.release()
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
	if err := c.edge.mem.complete(c, r.size, held); err != nil {
		c.edge.slots.release()
		c.slots.release()
		return err
	}
	c.mu.Lock()
	c.asked = append(c.asked, r)
	c.mu.Unlock()
	c.edge.met.requests.Inc()
	c.edge.cfg.Handler.ServeReq(c.edge.ctx, r)
	return nil
}

// resume waits for a place for the request that had none, dispatches it and
// continues with the input behind it. Meanwhile nothing is read: TCP tells the
// peer to wait.
func (c *reqConn) resume() error {
	for c.waiting != nil {
		stop := c.frost.begun()
		if !c.atone(stop) {
			return c.interrupted()
		}
		if !c.slots.wait(c.done, stop) {
			return c.interrupted()
		}
		if !c.edge.slots.wait(c.done, stop) {
			c.slots.release()
			return c.interrupted()
		}
		r, rest := c.waiting, c.rest
		c.waiting, c.rest = nil, nil
		if err := c.dispatch(r); err != nil {
			return err
		}
		c.paused.Store(false)
		if err := c.hear(rest); err != nil && !errors.Is(err, errPaused) {
			return err
		}
	}
	return nil
}

// interrupted is why a wait for a place ended without one.
func (c *reqConn) interrupted() error {
	if c.reason() != reasonNone {
		return errCut
	}
	return errFrozen
}

// release ends a request that took a place.
func (c *reqConn) release(r *Request) {
	r.known()
	c.edge.mem.release(r.size)
	c.edge.slots.release()
	c.slots.release()
}

// check is the sweeper's look at a connection.
func (c *reqConn) check(now int64) {
	heard := c.heard.Load()
	begun := c.midway.Load()
	switch {
	case begun != 0 && now > c.due.Load():
		c.cut(ReasonSlowMessage)
	case c.edge.cfg.IdleTimeout > 0 && now-heard > int64(c.edge.cfg.IdleTimeout) && c.slots.used() == 0:
		c.cut(ReasonIdle)
	case now-heard < endCheckAfter:
		c.looked = false
	case !c.looked:
		c.looked = true
		if c.endReached() {
			c.cut(ReasonGone)
		}
	}
}
