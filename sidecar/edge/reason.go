package edge

import (
	"errors"

	"saltclusterd/sidecar/zmtp"
)

// Reason says why a connection ended or was not let in.
type Reason uint8

// The reasons, as they appear in logs and metrics.
const (
	reasonNone          Reason = iota
	ReasonGone                 // the peer closed or the network failed
	ReasonProtocol             // no ZMTP, or broken ZMTP
	ReasonLimit                // a frame, message or command beyond its limit
	ReasonProxyHeader          // a load balancer that does not say for whom it connects
	ReasonHandshake            // no READY in time
	ReasonSlowMessage          // a message begun and not finished in time
	ReasonIdle                 // nothing asked for longer than IdleTimeout
	ReasonMemory               // MaxMemory is used up
	ReasonOutput               // does not read its answers
	ReasonSlow                 // too far behind the publications
	ReasonStalled              // took nothing at all for too long
	ReasonSilent               // answers no PING
	ReasonSubscriptions        // too many or too long subscriptions
	ReasonFull                 // MaxConns reached
	ReasonAddrFull             // MaxConnsPerAddr reached
	ReasonDrained              // we are handing our peers over
	ReasonClosed               // we are shutting down
	reasons
)

var reasonText = [reasons]string{
	"none", "gone", "protocol", "limit", "proxy_header", "handshake_timeout", "slow_message", "idle", "memory", "output",
	"slow", "stalled", "silent", "subscriptions", "full", "address_full", "drained", "closed",
}

func (r Reason) String() string {
	if r < reasons {
		return reasonText[r]
	}
	return "unknown"
}

// ours tells whether the peer did nothing wrong.
func (r Reason) ours() bool {
	return r == ReasonGone || r == ReasonDrained || r == ReasonClosed || r == ReasonIdle
}

// errCut ends a reader whose connection was cut meanwhile.
var errCut = errors.New("connection was cut")

// cutError is an error of a peer that carries its own Reason.
type cutError struct {
	reason Reason
	text   string
}

func (e *cutError) Error() string { return e.text }

// reasonOf classifies what ended a reader.
func reasonOf(err error) Reason {
	var ce *cutError
	switch {
	case errors.As(err, &ce):
		return ce.reason
	case errors.Is(err, zmtp.ErrFrameTooLarge), errors.Is(err, zmtp.ErrMessageTooLarge),
		errors.Is(err, zmtp.ErrTooManyParts), errors.Is(err, zmtp.ErrCommandTooLarge):
		return ReasonLimit
	case errors.Is(err, zmtp.ErrNotZMTP), errors.Is(err, zmtp.ErrMechanism), errors.Is(err, zmtp.ErrHandshake),
		errors.Is(err, zmtp.ErrFlags), errors.Is(err, zmtp.ErrCommand):
		return ReasonProtocol
	}
	return ReasonGone
}
