package netconn

import "errors"

// Reason says why a connection ended or was not let in.
type Reason uint8

// The reasons, as they appear in logs and metrics.
const (
	ReasonNone          Reason = iota
	ReasonGone                 // the peer closed or the network failed
	ReasonProtocol             // no protocol of ours, or a broken one
	ReasonLimit                // a frame, message or command beyond its limit
	ReasonProxyHeader          // a load balancer that does not say for whom it connects
	ReasonTLS                  // a handshake of TLS that failed, or a broken record
	ReasonHandshake            // no READY in time
	ReasonSlowMessage          // a message begun and not finished in time
	ReasonIdle                 // nothing asked for longer than IdleTimeout
	ReasonMemory               // MaxMemory is used up
	ReasonOutput               // does not read its answers
	ReasonSlow                 // too far behind the publications
	ReasonStalled              // took nothing at all for too long
	ReasonSilent               // answers no PING
	ReasonSubscriptions        // too many or too long subscriptions
	ReasonCommands             // too many commands or changes of subscriptions
	ReasonFull                 // MaxConns reached
	ReasonAddrFull             // MaxConnsPerAddr reached, or what a /64 may have
	ReasonDrained              // we are handing our peers over
	ReasonClosed               // we are shutting down
	reasons
)

var reasonText = [reasons]string{
	"none", "gone", "protocol", "limit", "proxy_header", "tls", "handshake_timeout", "slow_message", "idle", "memory", "output",
	"slow", "stalled", "silent", "subscriptions", "commands", "full", "address_full", "drained", "closed",
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

// ErrCut ends a reader whose connection was cut meanwhile.
var ErrCut = errors.New("connection was cut")

// Error is an error of a peer that carries its own Reason.
type Error struct {
	reason Reason
	err    error
}

// NewError returns an error with a text.
func NewError(r Reason, text string) *Error { return &Error{r, errors.New(text)} }

// WrapError returns err with a reason.
func WrapError(r Reason, err error) *Error { return &Error{r, err} }

func (e *Error) Error() string { return e.err.Error() }

// Unwrap returns the error without its reason.
func (e *Error) Unwrap() error { return e.err }

// reasonOf returns the reason of what ended a reader.
func reasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.reason
	}
	return ReasonGone
}
