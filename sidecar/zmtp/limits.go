package zmtp

import "errors"

// Limits bound what a peer may make us hold. A zero field means its default.
type Limits struct {
	MaxFrame   int64 // bytes in the body of one data frame
	MaxMore    int64 // bytes in the body of a data frame that others of its message follow
	MaxParts   int   // frames in one message
	MaxMessage int64 // bytes in the bodies of all frames of one message
	MaxCommand int   // bytes in the body of one command
}

// DefaultLimits fit a Salt peer: a request or a return of up to 64 MiB, with
// the envelope of a few devices in front of it.
var DefaultLimits = Limits{
	MaxFrame:   64 << 20,
	MaxMore:    64 << 20,
	MaxParts:   16,
	MaxMessage: 64 << 20,
	MaxCommand: 4 << 10,
}

// WithDefaults returns l with every zero field replaced by its default.
// MaxMore defaults to MaxFrame, MaxMessage to the larger of its default and MaxFrame.
func (l Limits) WithDefaults() Limits {
	if l.MaxFrame <= 0 {
		l.MaxFrame = DefaultLimits.MaxFrame
	}
	if l.MaxMore <= 0 {
		l.MaxMore = l.MaxFrame
	}
	if l.MaxParts <= 0 {
		l.MaxParts = DefaultLimits.MaxParts
	}
	if l.MaxMessage <= 0 {
		l.MaxMessage = max(DefaultLimits.MaxMessage, l.MaxFrame)
	}
	if l.MaxCommand <= 0 {
		l.MaxCommand = DefaultLimits.MaxCommand
	}
	return l
}

// What a peer can do wrong. All are final: the connection is of no more use.
var (
	// ErrNotZMTP says that the first bytes are no ZMTP 3 greeting.
	ErrNotZMTP = errors.New("peer does not speak ZMTP 3")
	// ErrMechanism says that the peer wants another mechanism than NULL.
	ErrMechanism = errors.New("peer wants a security mechanism other than NULL")
	// ErrHandshake says that something else came where READY was due.
	ErrHandshake = errors.New("peer broke the ZMTP handshake")
	// ErrFlags says that a frame header has impossible flag bits.
	ErrFlags = errors.New("impossible frame flags")
	// ErrFrameTooLarge says that a frame announced more than Limits.MaxFrame.
	ErrFrameTooLarge = errors.New("frame larger than the limit")
	// ErrMessageTooLarge says that a message grew beyond Limits.MaxMessage.
	ErrMessageTooLarge = errors.New("message larger than the limit")
	// ErrTooManyParts says that a message has more than Limits.MaxParts frames.
	ErrTooManyParts = errors.New("message has more parts than the limit")
	// ErrCommandTooLarge says that a command announced more than Limits.MaxCommand.
	ErrCommandTooLarge = errors.New("command larger than the limit")
	// ErrCommand says that a command's body is malformed.
	ErrCommand = errors.New("malformed command")
)

// PeerError is the reason a peer gave in an ERROR command.
type PeerError struct{ Reason string }

func (e *PeerError) Error() string { return "peer refused the connection: " + e.Reason }
