package upstream

import "errors"

// What a call can fail with; context errors of the caller are passed on as they are.
var (
	// ErrDown: no master answers at the address; nothing was sent.
	ErrDown = errors.New("upstream: master is down")
	// ErrBusy: the wait queue is full; nothing was sent.
	ErrBusy = errors.New("upstream: request queue is full")
	// ErrTimeout: no reply within the deadline.
	ErrTimeout = errors.New("upstream: no reply in time")
	// ErrLost: the connection broke while the request was in flight; the master may have executed it.
	ErrLost = errors.New("upstream: connection lost in flight")
	// ErrTooLarge: the request is larger than the configured limit; nothing was sent.
	ErrTooLarge = errors.New("upstream: request too large")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("upstream: closed")
)

// unsentError marks a failure of a call whose request never left this process.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() + " (not sent)" }
func (e *unsentError) Unwrap() error { return e.err }

// Prebuilt so that failing a full queue allocates nothing.
var (
	errQueuedTimeout = &unsentError{ErrTimeout}
	errQueuedClosed  = &unsentError{ErrClosed}
)

// Retryable reports whether the request was certainly never handed to the master, so that sending it again, here or
// through a peer, cannot execute it twice.
func Retryable(err error) bool {
	var unsent *unsentError
	return errors.Is(err, ErrDown) || errors.Is(err, ErrBusy) || errors.As(err, &unsent)
}
