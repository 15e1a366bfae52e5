package edge

import (
	"errors"
	"slices"

	"saltclusterd/sidecar/edge/netconn"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/zmtp"
)

// zmtpConn is a connection that speaks ZMTP.
type zmtpConn struct {
	netconn.Conn
	dec zmtp.Decoder
}

// greet sends greeting and READY. A fresh socket has room for them.
func (c *zmtpConn) greet(hello []byte) error {
	_, err := c.Write(hello)
	return err
}

// meet takes the first command of a peer, which must be a READY from one of
// the given socket types. A peer of another type is told so.
func (c *zmtpConn) meet(body []byte, types ...string) error {
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
	c.dec.SetReady()
	c.SetReady()
	return nil
}

// encode writes what both kinds of connections have in common. Wants Mu.
func (c *zmtpConn) encode(e *handover.Encoder, now int64) (fd int, ok bool) {
	if fd, ok = c.Conn.Encode(e, now); ok {
		c.dec.State().Encode(e)
	}
	return fd, ok
}

// decode is encode backwards; it leaves the descriptor alone.
func (c *zmtpConn) decode(d *handover.Decoder, fd int, now int64, l *netconn.Listener, limits *zmtp.Limits) error {
	if err := c.Conn.Decode(d, fd, now, l); err != nil {
		return err
	}
	s := zmtp.DecodeState(d)
	if err := d.Err(); err != nil {
		return err
	}
	var err error
	if c.dec, err = zmtp.ResumeDecoder(limits, s); err != nil {
		return err
	}
	if c.Ready() != s.Ready || s.Ready && s.Stage == 0 {
		return handover.ErrState
	}
	return nil
}

// protocolError gives an error of the decoder its reason.
func protocolError(err error) error {
	switch {
	case errors.Is(err, zmtp.ErrFrameTooLarge), errors.Is(err, zmtp.ErrMessageTooLarge),
		errors.Is(err, zmtp.ErrTooManyParts), errors.Is(err, zmtp.ErrCommandTooLarge):
		return netconn.WrapError(netconn.ReasonLimit, err)
	case errors.Is(err, zmtp.ErrNotZMTP), errors.Is(err, zmtp.ErrMechanism), errors.Is(err, zmtp.ErrHandshake),
		errors.Is(err, zmtp.ErrFlags), errors.Is(err, zmtp.ErrCommand):
		return netconn.WrapError(netconn.ReasonProtocol, err)
	}
	return err
}
