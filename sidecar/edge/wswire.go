package edge

import (
	"errors"
	"io"
	"time"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire/wsframe"
)

// wsWire is what a WebSocket is on both ports.
type wsWire struct{ dec wsframe.Decoder }

func newWSWire(limit int64) wsWire { return wsWire{wsframe.NewDecoder(int(limit))} }

func (w *wsWire) transport() Transport { return WS }

func (w *wsWire) encode(e *handover.Encoder) {
	s := w.dec.State()
	e.Bool(s.Opened)
	e.Bool(s.Begun)
	e.Bytes(s.Arrived)
	e.Bytes(s.Message)
}

// decodeWSWire is encode backwards.
func decodeWSWire(d *handover.Decoder, limit int64, ready bool) (w wsWire, err error) {
	s := wsframe.State{Opened: d.Bool(), Begun: d.Bool(), Arrived: d.Bytes(), Message: d.Bytes()}
	if err := d.Err(); err != nil {
		return w, err
	}
	if s.Opened != ready {
		return w, handover.ErrState
	}
	w.dec, err = wsframe.ResumeDecoder(int(limit), s)
	return w, err
}

// webSocketError gives an error of a WebSocket its reason.
func webSocketError(err error) error {
	if errors.Is(err, wsframe.ErrTooLarge) {
		return netconn.WrapError(netconn.ReasonLimit, err)
	}
	return netconn.WrapError(netconn.ReasonProtocol, err)
}

// wsReq is Salt's ws transport on the request port. A request has no envelope, so that a peer has to ask one after the
// other. Salt's minions do, and open a connection for each.
type wsReq struct{ wsWire }

// wsIdle is how long a request connection may do nothing. Salt's minions open one for each request, use it once, and
// leave it to their garbage collector.
const wsIdle = 10 * time.Second

// littlePart is up to where a part of a request costs the edge more than its sender, as a command does.
const littlePart = 1 << 10

func (w *wsReq) next(c *reqConn, in []byte) (int, error) {
	ev, n, err := w.dec.Next(in)
	if err != nil {
		if len(ev.Bytes) > 0 {
			c.send(ev.Bytes)
		}
		return n, webSocketError(err)
	}
	switch ev.Kind {
	case wsframe.Opened:
		c.send(ev.Bytes)
		c.SetReady()
	case wsframe.Message:
		return n, c.request(ev.Bytes, ev.Owned, nil)
	case wsframe.Ping:
		if err := c.commands.countCommand(); err != nil {
			return n, err
		}
		c.send(wsframe.AppendPong(nil, ev.Bytes))
	case wsframe.Pong:
		return n, c.commands.countCommand()
	case wsframe.Part:
		if len(ev.Bytes) < littlePart {
			return n, c.commands.countCommand()
		}
	case wsframe.Closed:
		c.send(wsframe.AppendClose(nil))
		return n, io.EOF
	}
	return n, nil
}

func (w *wsReq) midway() bool  { return w.dec.Midway() }
func (w *wsReq) buffered() int { return w.dec.Buffered() }

func (w *wsReq) appendReplyHead(dst, _ []byte, body int) []byte {
	dst = wsframe.AppendHeader(dst, max(body, 1))
	if body == 0 {
		dst = append(dst, emptyReply)
	}
	return dst
}

// wsLast ends a subscriber: a message that is not msgpack, and the end of the WebSocket. Salt's minions ask a
// connection that has ended for the next message again and again, without a pause, and do nothing else any more. The
// message ends the task that would do so (salt/transport/ws.py, PublishClient.recv and on_recv_handler). The minion is
// without a connection then. With master_alive_interval it notices that and often connects again.
var wsLast = wsframe.AppendClose(append(wsframe.AppendHeader(nil, 1), 0xc1))

// wsFarewell is wsLast unless the subscriber is in the middle of something. Wants Mu.
func (s *sub) wsFarewell() []byte {
	if s.blocked || s.q.size() > 0 {
		return nil
	}
	return wsLast
}

// wsSub is Salt's ws transport on the publish port. Its subscriber never names itself and gets everything.
type wsSub struct{ wsWire }

func (w *wsSub) pings() bool { return true }

func (w *wsSub) next(s *sub, in []byte) (int, error) {
	ev, n, err := w.dec.Next(in)
	if err != nil {
		if len(ev.Bytes) > 0 {
			_, _ = s.Write(ev.Bytes)
		}
		return n, webSocketError(err)
	}
	switch ev.Kind {
	case wsframe.Opened:
		if _, err := s.Write(ev.Bytes); err != nil { // a fresh socket has room for it
			return n, err
		}
		s.SetReady()
		s.SetUnreadTimeout(s.edge.cfg.HeartbeatTimeout)
		s.SetFarewell(s.wsFarewell)
		s.join()
		s.shard.subscribe(s, "")
	case wsframe.Message, wsframe.Part:
		return n, netconn.NewError(netconn.ReasonProtocol, "a message of a subscriber")
	case wsframe.Pong:
		return n, s.commands.countCommand()
	case wsframe.Ping:
		if err := s.commands.countCommand(); err != nil {
			return n, err
		}
		s.pong(wsframe.AppendPong(nil, ev.Bytes))
	case wsframe.Closed:
		s.pong(wsframe.AppendClose(nil))
		return n, io.EOF
	}
	return n, nil
}
