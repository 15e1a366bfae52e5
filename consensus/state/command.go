package state

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnsupported means that a log entry, a command or a snapshot record comes
// from a newer version, matters, and is not understood here. The state was not
// changed. A node that meets it must stop and be upgraded.
var ErrUnsupported = errors.New("written by a newer saltclusterd: upgrade this node")

// ErrMalformed means bytes that no version writes.
var ErrMalformed = errors.New("malformed record")

// Command is one change to the state: one of the exported command structs of
// this package, by value.
type Command interface {
	// Type is the record type, such as "key.set".
	Type() string
	// Validate checks what can be checked without a state: shapes and sizes.
	Validate() error
	// applyTo changes d, or leaves it alone and says why in the Result.
	applyTo(d *data) Result
}

// Code is the outcome of a command. The empty code is success.
type Code string

// The outcomes of a command.
const (
	OK             Code = ""
	Conflict       Code = "conflict"        // the precondition does not hold; Rev is the revision that holds
	Invalid        Code = "invalid"         // the command is malformed or out of bounds
	NotFound       Code = "not_found"       // no such key
	UnknownMember  Code = "unknown_member"  // no such member
	NotInitialized Code = "not_initialized" // the cluster was not born yet
	LimitReached   Code = "limit"           // the state is full in this respect
	Ignored        Code = "ignored"         // unknown to this version and marked as ignorable
	OutcomeUnknown Code = "outcome_unknown" // a retry came too late to tell whether the first attempt was applied
)

// Result is the outcome of one command. After success Rev is the revision of
// the object the command is about; after Conflict it is the revision that
// would have been needed.
type Result struct {
	Rev     uint64 `json:"rev,omitempty"`
	Code    Code   `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// Err turns an unsuccessful result into an error, nil otherwise.
func (r Result) Err() error {
	if r.Code == OK {
		return nil
	}
	return &ResultError{Result: r}
}

// ResultError is an unsuccessful Result as an error.
type ResultError struct{ Result Result }

func (e *ResultError) Error() string {
	if e.Result.Message == "" {
		return string(e.Result.Code)
	}
	return fmt.Sprintf("%s: %s", e.Result.Code, e.Result.Message)
}

// IsConflict tells whether err is a Result with code Conflict.
func IsConflict(err error) bool {
	var re *ResultError
	return errors.As(err, &re) && re.Result.Code == Conflict
}

// maxMessage bounds what is remembered of a refusal; results are kept and
// replicated for the sake of repeated requests.
const maxMessage = 300

func refuse(c Code, rev uint64, format string, args ...any) Result {
	msg := strings.ToValidUTF8(fmt.Sprintf(format, args...), "?")
	if len(msg) > maxMessage {
		msg = strings.ToValidUTF8(msg[:maxMessage], "")
	}
	return Result{Code: c, Rev: rev, Message: msg}
}
