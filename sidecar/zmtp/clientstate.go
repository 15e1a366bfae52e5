package zmtp

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrInterrupted ends a ReadMessage because of Interrupt. Nothing is lost: the
// next one continues at the same byte.
var ErrInterrupted = errors.New("reading was interrupted")

// ClientState is a client written down between two calls of ReadMessage.
type ClientState struct {
	Decoder DecoderState
	Rest    []byte   // read and not decoded
	Parts   [][]byte // of a message that is not complete
}

// Interrupt ends a running ReadMessage, or the next one, with ErrInterrupted.
func (c *Client) Interrupt() {
	c.stop.Store(true)
	_ = c.conn.SetReadDeadline(longAgo)
}

// Proceed lets ReadMessage wait again.
func (c *Client) Proceed() {
	c.stop.Store(false)
	_ = c.conn.SetReadDeadline(time.Time{})
}

// State writes c down; no goroutine may be reading. The byte strings are c's own.
func (c *Client) State() ClientState {
	return ClientState{Decoder: c.dec.State(), Rest: c.in, Parts: c.parts}
}

// Conn is the connection below; it is the client's.
func (c *Client) Conn() net.Conn { return c.conn }

// ResumeClient continues with the connection of a client of another process.
func ResumeClient(conn net.Conn, s ClientState, o ClientOptions) (*Client, error) {
	if !s.Decoder.Ready {
		return nil, fmt.Errorf("no handshake: %w", ErrDecoderState)
	}
	c := newClient(conn, o.withDefaults(), clientRoom)
	var err error
	if c.dec, err = ResumeDecoder(&c.opts.Limits, s.Decoder); err != nil {
		return nil, err
	}
	c.in = append([]byte(nil), s.Rest...)
	for _, p := range s.Parts {
		c.parts = append(c.parts, append([]byte(nil), p...))
	}
	return c, nil
}
