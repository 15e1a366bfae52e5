package spool

import (
	"errors"
	"fmt"

	"saltclusterd/durable"
)

// Why a record was not taken. Nothing that failed has been acknowledged; it may still be delivered when the disk kept
// part of it.
var (
	// ErrFull: the journal has reached its configured size; consumers must catch up first.
	ErrFull = errors.New("spool: the journal is full")
	// ErrBusy: too much waits for the disk already.
	ErrBusy = errors.New("spool: too many records wait for the disk")
	// ErrHangs: the disk does not answer. It may yet take the record.
	ErrHangs = errors.New("spool: the disk does not answer")
	// ErrTooLarge: the record is larger than the journal takes.
	ErrTooLarge = errors.New("spool: record is too large")
	// ErrClosed: the spool was closed or never opened.
	ErrClosed = errors.New("spool: closed")
	// ErrNewer: a newer version of the program has written the journal.
	ErrNewer = errors.New("the journal was written by a newer saltclusterd: start that version again and let it empty the journal")
	// ErrLocked: another process has the journal open.
	ErrLocked = errors.New("spool: the journal is in use by another process")
)

// State says whether the spool takes records.
type State string

// The states of a spool.
const (
	StateOK       State = "ok"
	StateFull     State = "full"      // its configured size is reached
	StateDiskFull State = "disk full" // the file system has no room (or quota)
	StateReadOnly State = "read-only" // the file system was mounted or turned read-only
	StateFailing  State = "failing"   // the disk reports another error
)

// stateOf tells which state an error of the disk means.
func stateOf(err error) State {
	switch {
	case err == nil:
		return StateOK
	case errors.Is(err, ErrFull):
		return StateFull
	case durable.IsFullError(err):
		return StateDiskFull
	case durable.IsReadOnlyError(err):
		return StateReadOnly
	}
	return StateFailing
}

// Damage is a place in the journal that cannot be read.
type Damage struct {
	Segment string // file name
	Offset  int64
	Bytes   int64
	Lost    uint64 // records that were there, by their numbers
	// Unconfirmed: the records belonged to the last group, which may never have been acknowledged.
	Unconfirmed bool
}

func (d Damage) String() string {
	return fmt.Sprintf("%s: %d bytes at %d damaged, %d records lost", d.Segment, d.Bytes, d.Offset, d.Lost)
}
