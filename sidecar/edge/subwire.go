package edge

import (
	"crypto/sha1" //nolint:gosec // what Salt's topics are made of
	"encoding/hex"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/zmtp"
)

// subWire is a transport on the publish port, as a subscriber uses it. It is the reader's.
type subWire interface {
	transport() Transport
	// next takes bytes from in, which is not empty, up to the end of one thing that the peer says, and acts on it.
	next(s *sub, in []byte) (n int, err error)
	// pings tells whether the peer answers a PING. Every goroutine may ask once the connection is ready.
	pings() bool
	encode(e *handover.Encoder)
}

// newSubWire returns the transport of a connection on which nothing was read yet.
func newSubWire(t Transport, cfg *PubConfig) subWire {
	switch t {
	case TCP:
		return &tcpSub{dec: tcpframe.NewDecoder(int(cfg.Limits.MaxMessage))}
	case WS:
		return &wsSub{newWSWire(cfg.Limits.MaxMessage)}
	}
	return &zmtpSub{zmtpWire{zmtp.NewDecoder(&cfg.Limits)}}
}

// decodeSubWire is encode backwards.
func decodeSubWire(t Transport, d *handover.Decoder, cfg *PubConfig, ready bool) (subWire, error) {
	switch t {
	case TCP:
		w := &tcpSub{said: d.Int(maxNames)}
		var err error
		w.dec, err = tcpframe.Resume(int(cfg.Limits.MaxMessage), d.Bytes())
		return w, err
	case WS:
		w, err := decodeWSWire(d, cfg.Limits.MaxMessage, ready)
		return &wsSub{w}, err
	}
	w := &zmtpSub{}
	return w, w.decode(d, &cfg.Limits, ready)
}

// zmtpSub is ZMTP on the publish port: a PUB to SUB sockets.
type zmtpSub struct{ zmtpWire }

// pings: a peer that speaks 3.0 knows no PING.
func (w *zmtpSub) pings() bool { return w.dec.Minor() >= 1 }

func (w *zmtpSub) next(s *sub, in []byte) (int, error) {
	ev, n, err := w.dec.Next(in)
	if err != nil {
		return n, protocolError(err)
	}
	switch {
	case ev.Kind == zmtp.Command && !s.Ready():
		if err = w.meet(&s.Conn, ev.Body, "SUB", "XSUB"); err == nil {
			s.join()
		}
	case ev.Kind == zmtp.Command:
		if err = s.commands.countCommand(); err == nil {
			err = w.command(s, ev.Body)
		}
	case ev.Kind == zmtp.Frame:
		if err = s.commands.countCommand(); err == nil {
			err = w.message(s, ev)
		}
	}
	return n, protocolError(err)
}

// message takes a message: a subscription, and nothing else. No minion sends
// anything else here: a peer that does speaks as if it published.
func (w *zmtpSub) message(s *sub, ev zmtp.Event) error {
	topic, add, ok := zmtp.ParseSubscription(ev.Body)
	if !ok || ev.More {
		return netconn.NewError(netconn.ReasonProtocol, "a message that is not a subscription")
	}
	return s.subscription(topic, add)
}

func (w *zmtpSub) command(s *sub, body []byte) error {
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
		s.pong(zmtp.AppendPong(nil, context))
	}
	return nil
}

// tcpSub is Salt's tcp transport on the publish port. Its subscriber gets
// everything until a frame has named its minion, and then what is for that.
type tcpSub struct {
	dec  tcpframe.Decoder
	said int // frames
}

// maxNames is how many frames a subscriber may send. A minion sends one on each connection.
const maxNames = 16

func (w *tcpSub) transport() Transport { return TCP }
func (w *tcpSub) pings() bool          { return false }

func (w *tcpSub) next(s *sub, in []byte) (int, error) {
	f, n, ok, err := w.dec.Next(in)
	if err != nil || !ok {
		return n, frameError(err)
	}
	if w.said++; w.said > maxNames {
		return n, netconn.NewError(netconn.ReasonSubscriptions, "too many frames from a subscriber")
	}
	if !s.Ready() {
		s.SetReady()
		s.SetUnreadTimeout(s.edge.cfg.HeartbeatTimeout) // it answers no PING
		s.join()
		s.shard.subscribe(s, "")
	}
	if s.edge.cfg.Identify == nil {
		return n, nil
	}
	if id, ok := s.edge.cfg.Identify(f.Body); ok {
		s.shard.name(s, idTopic(id), s.edge.cfg.Targeted == nil || s.edge.cfg.Targeted())
	}
	return n, nil
}

func (w *tcpSub) encode(e *handover.Encoder) {
	e.Int(w.said)
	e.Bytes(w.dec.Arrived())
}

// idTopic is the topic of what is for one minion alone: with zeromq minions
// that filter subscribe to it (salt/transport/zeromq.py).
func idTopic(id string) string {
	sum := sha1.Sum([]byte(id)) //nolint:gosec // Salt's topic
	return hex.EncodeToString(sum[:])
}
