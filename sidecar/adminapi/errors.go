package adminapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
)

// Code names a kind of failure; it is stable, the message is not.
type Code string

// Codes of an Error.
const (
	CodeInvalid     Code = "invalid"        // the request makes no sense
	CodeDenied      Code = "denied"         // the caller may not use the socket
	CodeNotFound    Code = "not_found"      // no such thing, or a verb this daemon does not know
	CodeBusy        Code = "busy"           // another long operation is running
	CodeNotMember   Code = "not_member"     // this node belongs to no cluster
	CodeMember      Code = "already_member" // this node belongs to a cluster already
	CodeNoQuorum    Code = "no_quorum"      // a majority of voters cannot be reached
	CodeRefused     Code = "refused"        // the cluster said no: secret, cluster_id, fingerprint, ...
	CodeUnreachable Code = "unreachable"    // a peer or the local salt-master does not answer
	CodeTimeout     Code = "timeout"        // it did not happen in time
	CodeUnavailable Code = "unavailable"    // starting or stopping
	CodeInternal    Code = "internal"
)

// Error is the daemon's answer when it says no. Message is a sentence; Hint
// says what to do about it.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Error returns the sentence, without the hint.
func (e *Error) Error() string { return e.Message }

// Errorf makes an Error; the hint may be empty.
func Errorf(code Code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}
}

// CodeOf returns the code of the first *Error in err's chain, "" for nil and
// CodeInternal for any other error.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// HintOf returns the hint an error carries, or "".
func HintOf(err error) string {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Hint
	}
	if e, ok := errors.AsType[*UnreachableError](err); ok {
		return e.Hint
	}
	return ""
}

// HTTPStatus maps a code onto the status of the HTTP answer.
func (c Code) HTTPStatus() int {
	switch c {
	case CodeInvalid:
		return http.StatusBadRequest
	case CodeDenied:
		return http.StatusForbidden
	case CodeNotFound:
		return http.StatusNotFound
	case CodeBusy, CodeMember, CodeNotMember, CodeRefused:
		return http.StatusConflict
	case CodeNoQuorum, CodeUnreachable, CodeUnavailable:
		return http.StatusServiceUnavailable
	case CodeTimeout:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

// UnreachableError says that the socket gave no answer.
type UnreachableError struct {
	Socket string
	Hint   string
	Err    error
}

// Denied reports that the caller may not connect to the socket; whether a daemon listens on it is then unknown.
func (e *UnreachableError) Denied() bool { return errors.Is(e.Err, fs.ErrPermission) }

// IsDenied reports that the caller may not use the socket, as the system or the daemon has said. Nothing is known then
// of the daemon, nor of what it does.
func IsDenied(err error) bool {
	u, unreachable := errors.AsType[*UnreachableError](err)
	return unreachable && u.Denied() || CodeOf(err) == CodeDenied
}

// IsDown reports that no process answers on the socket, which the caller may use.
func IsDown(err error) bool {
	u, unreachable := errors.AsType[*UnreachableError](err)
	return unreachable && !u.Denied()
}

// Error names the socket and the system's reason.
func (e *UnreachableError) Error() string {
	if e.Denied() {
		return fmt.Sprintf("connect to saltclusterd on %s: %v", e.Socket, e.Err)
	}
	return fmt.Sprintf("saltclusterd is not reachable on %s: %v", e.Socket, e.Err)
}

// Unwrap returns the system's reason.
func (e *UnreachableError) Unwrap() error { return e.Err }
