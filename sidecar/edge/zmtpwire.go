package edge

import (
	"errors"
	"slices"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire/tcpframe"
	"saltclusterd/sidecar/zmtp"
)

// zmtpWire is what ZMTP is on both ports.
type zmtpWire struct{ dec zmtp.Decoder }

func (w *zmtpWire) transport() Transport { return ZeroMQ }

// meet takes the first command of a peer, which must be a READY from one of
// the given socket types. A peer of another type is told so.
func (w *zmtpWire) meet(c *netconn.Conn, body []byte, types ...string) error {
	name, data, err := zmtp.ParseCommand(body)
	if err != nil {
		return err
	}
	if string(name) != zmtp.CmdReady {
		return zmtp.ErrHandshake
	}
	peer, err := zmtp.ParseReady(data)
	if err != nil {
		return err
	}
	if !slices.Contains(types, peer.SocketType) {
		_, _ = c.Write(zmtp.AppendError(nil, "Invalid socket type"))
		return netconn.NewError(netconn.ReasonProtocol, "wrong socket type")
	}
	w.dec.SetReady()
	c.SetReady()
	return nil
}

func (w *zmtpWire) encode(e *handover.Encoder) { w.dec.State().Encode(e) }

// decode is encode backwards.
func (w *zmtpWire) decode(d *handover.Decoder, limits *zmtp.Limits, ready bool) error {
	s := zmtp.DecodeState(d)
	if err := d.Err(); err != nil {
		return err
	}
	var err error
	if w.dec, err = zmtp.ResumeDecoder(limits, s); err != nil {
		return err
	}
	if ready != s.Ready || s.Ready && s.Stage == 0 {
		return handover.ErrState
	}
	return nil
}

// errEnvelope ends a connection that does not speak as REQ and DEALER sockets do.
func errEnvelope(text string) error { return netconn.NewError(netconn.ReasonProtocol, text) }

var errEnvelopeTooLong = netconn.NewError(netconn.ReasonLimit, "envelope too long")

// protocolError gives an error of the decoder its reason.
func protocolError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, zmtp.ErrFrameTooLarge), errors.Is(err, zmtp.ErrMessageTooLarge),
		errors.Is(err, zmtp.ErrTooManyParts), errors.Is(err, zmtp.ErrCommandTooLarge):
		return netconn.WrapError(netconn.ReasonLimit, err)
	case errors.Is(err, zmtp.ErrNotZMTP), errors.Is(err, zmtp.ErrMechanism), errors.Is(err, zmtp.ErrHandshake),
		errors.Is(err, zmtp.ErrFlags), errors.Is(err, zmtp.ErrCommand):
		return netconn.WrapError(netconn.ReasonProtocol, err)
	}
	return err
}

// frameError gives an error of Salt's tcp framing its reason.
func frameError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tcpframe.ErrTooLarge):
		return netconn.WrapError(netconn.ReasonLimit, err)
	}
	return netconn.WrapError(netconn.ReasonProtocol, err)
}
