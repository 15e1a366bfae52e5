package edge

import (
	"fmt"

	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/zmtp"
)

// reqWire is a transport on the request port. It is the reader's, except appendReplyHead.
type reqWire interface {
	transport() Transport
	// next takes bytes from in, which is not empty, up to the end of one request, which it gives to the connection.
	next(c *reqConn, in []byte) (n int, err error)
	// midway tells whether a request is incomplete, and buffered how much memory it takes.
	midway() bool
	buffered() int
	// appendReplyHead appends what stands before the body of the reply to a request with this envelope.
	appendReplyHead(dst, envelope []byte, body int) []byte
	encode(e *handover.Encoder)
}

// newReqWire returns the transport of a connection on which nothing was read yet.
func newReqWire(t Transport, cfg *ReqConfig) reqWire {
	switch t {
	case TCP:
		return &tcpReq{tcpframe.NewDecoder(int(cfg.Limits.MaxMessage))}
	case WS:
		return &wsReq{newWSWire(cfg.Limits.MaxMessage)}
	}
	return &zmtpReq{zmtpWire: zmtpWire{zmtp.NewDecoder(&cfg.Limits)}}
}

// decodeReqWire is encode backwards.
func decodeReqWire(t Transport, d *handover.Decoder, cfg *ReqConfig, ready bool) (reqWire, error) {
	switch t {
	case TCP:
		dec, err := tcpframe.Resume(int(cfg.Limits.MaxMessage), d.Bytes())
		return &tcpReq{dec}, err
	case WS:
		w, err := decodeWSWire(d, cfg.Limits.MaxMessage, ready)
		return &wsReq{w}, err
	}
	w := &zmtpReq{}
	if err := w.zmtpWire.decode(d, &cfg.Limits, ready); err != nil {
		return nil, err
	}
	w.inBody, w.envelope = d.Bool(), clone(d.Bytes())
	if !ready && (w.inBody || w.envelope != nil) {
		return nil, fmt.Errorf("request before READY: %w", handover.ErrState)
	}
	return w, nil
}

// zmtpReq is ZMTP on the request port: a ROUTER to REQ and DEALER sockets.
type zmtpReq struct {
	zmtpWire
	envelope []byte // of the message being read
	inBody   bool   // the envelope is complete
}

func (w *zmtpReq) next(c *reqConn, in []byte) (int, error) {
	ev, n, err := w.dec.Next(in)
	if err != nil {
		return n, protocolError(err)
	}
	switch {
	case ev.Kind == zmtp.Frame:
		err = w.frame(c, ev)
	case ev.Kind == zmtp.Command && !c.Ready():
		err = w.meet(&c.Conn, ev.Body, "REQ", "DEALER")
	case ev.Kind == zmtp.Command:
		if err = c.commands.countCommand(); err == nil {
			err = w.command(c, ev.Body)
		}
	}
	return n, protocolError(err)
}

func (w *zmtpReq) command(c *reqConn, body []byte) error {
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
func (w *zmtpReq) frame(c *reqConn, ev zmtp.Event) error {
	if w.inBody {
		if ev.More {
			return errEnvelope("more than one frame behind the envelope")
		}
		envelope := w.envelope
		w.envelope, w.inBody = nil, false
		return c.request(ev.Body, ev.Owned, envelope)
	}
	w.inBody = len(ev.Body) == 0
	switch {
	case !ev.More:
		return errEnvelope("no body behind the envelope")
	case w.inBody && w.envelope == nil:
		w.envelope = plainEnvelope
	default:
		if len(w.envelope)+len(ev.Body)+zmtp.MaxFrameHeader > maxEnvelope {
			return errEnvelopeTooLong
		}
		w.envelope = zmtp.AppendFrame(w.envelope, ev.Body, true)
	}
	return nil
}

func (w *zmtpReq) midway() bool  { return w.dec.Midway() }
func (w *zmtpReq) buffered() int { return w.dec.Buffered() + len(w.envelope) }

func (w *zmtpReq) appendReplyHead(dst, envelope []byte, body int) []byte {
	return zmtp.AppendFrameHeader(append(dst, envelope...), body, false)
}

func (w *zmtpReq) encode(e *handover.Encoder) {
	w.zmtpWire.encode(e)
	e.Bool(w.inBody)
	e.Bytes(w.envelope)
}

// tcpReq is Salt's tcp transport on the request port. The envelope of a request is the head of its frame.
type tcpReq struct{ dec tcpframe.Decoder }

func (w *tcpReq) transport() Transport { return TCP }

func (w *tcpReq) next(c *reqConn, in []byte) (int, error) {
	f, n, ok, err := w.dec.Next(in)
	if err != nil || !ok {
		return n, frameError(err)
	}
	return n, c.request(f.Body, f.Owned, clone(f.Head))
}

func (w *tcpReq) midway() bool  { return w.dec.Midway() }
func (w *tcpReq) buffered() int { return w.dec.Buffered() }

// emptyReply stands for a reply of no bytes, of which zeromq makes an empty frame.
const emptyReply = 0xc0

func (w *tcpReq) appendReplyHead(dst, envelope []byte, body int) []byte {
	dst = tcpframe.AppendReplyHead(dst, envelope)
	if body == 0 {
		dst = append(dst, emptyReply)
	}
	return dst
}

func (w *tcpReq) encode(e *handover.Encoder) { e.Bytes(w.dec.Arrived()) }
