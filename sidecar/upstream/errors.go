package upstream

import (
	"context"
	"errors"
)

// What a call can fail with. An error of the caller's own context is passed on as its cause.
var (
	// ErrDown: no master answers at the address; nothing was sent.
	ErrDown = errors.New("upstream: master is down")
	// ErrBusy: the wait queue is full; nothing was sent.
	ErrBusy = errors.New("upstream: request queue is full")
	// ErrTimeout: no reply within the deadline. It is context.DeadlineExceeded too.
	ErrTimeout error = timeoutError{}
	// ErrLost: the connection broke while the request was in flight; the master may have executed it.
	ErrLost = errors.New("upstream: connection lost in flight")
	// ErrTooLarge: the request is larger than the configured limit; nothing was sent.
	ErrTooLarge = errors.New("upstream: request too large")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("upstream: closed")
)

type timeoutError struct{}

func (timeoutError) Error() string        { return "upstream: no reply in time" }
func (timeoutError) Timeout() bool        { return true }
func (timeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// unsentError marks the failure of a call whose request never left this process.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() + " (not sent)" }
func (e *unsentError) Unwrap() error { return e.err }

// Prebuilt, so that emptying a long queue allocates nothing.
var (
	errQueuedTimeout = &unsentError{ErrTimeout}
	errQueuedClosed  = &unsentError{ErrClosed}
)

// unsentErrorOf marks err as the end of a call that was never sent.
func unsentErrorOf(err error) error {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errQueuedTimeout
	case err == ErrClosed:
		return errQueuedClosed
	case err == ErrDown || err == ErrBusy:
		return err
	}
	return &unsentError{err}
}

// Retryable reports whether the request was certainly never handed to the master, so that sending it again, here or
// through a peer, cannot execute it twice.
func Retryable(err error) bool {
	var u *unsentError
	return errors.Is(err, ErrDown) || errors.Is(err, ErrBusy) || errors.As(err, &u)
}
