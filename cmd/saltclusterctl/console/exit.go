package console

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/sidecar/adminapi"
)

// Exit codes; the help lists them, scripts rely on them.
const (
	exitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	exitUnreachable = 3
	ExitNoQuorum    = 4
	ExitTimeout     = 5
	ExitRefused     = 6
	exitMember      = 7
	ExitDenied      = 8
	exitPeer        = 9
	ExitProblems    = 10
	ExitIncomplete  = 11
	exitNotFound    = 12
	exitBusy        = 13
)

const ExitCodesHelp = `EXIT CODES:
   0   ok
   1   error, or cancelled at a question
   2   invalid arguments; or --yes is missing where there is no terminal to ask at
   3   saltclusterd is not reachable
   4   this node belongs to no cluster, or a majority of the voters is not reachable
   5   timed out
   6   the cluster refused: secret, cluster_id, fingerprint, ...
   7   this node belongs to a cluster already
   8   permission denied: this user may not use the admin socket
   9   a peer, or the salt-master, does not answer
   10  a problem was found: status --check, doctor, verify, config check, haproxy --check, setup --check, leave --dry-run, keys merge --dry-run; config diff found a difference
   11  incomplete: verify found no difference, but could not ask every node; roots diff could not ask one
   12  not found: no such key, job, token, revision, ...
   13  busy: another long operation is running
`

// usageError is a mistake in the arguments.
type usageError struct {
	message string
	hint    string
}

func (e *usageError) Error() string { return e.message }

// Usagef is an error about a command line, with what to type instead.
func Usagef(hint, format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: hint}
}

// problemError is a problem that was looked for and found.
type problemError struct{ usageError }

// Problemf is an error of a check that has found something, with what to type.
func Problemf(hint, format string, args ...any) error {
	return &problemError{usageError{message: fmt.Sprintf(format, args...), hint: hint}}
}

// SilentError ends with a code after the output has said everything.
type SilentError int

func (e SilentError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitCode maps an error onto a documented code.
func ExitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[SilentError](err); ok {
		return int(e)
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return ExitUsage
	}
	if _, ok := errors.AsType[*problemError](err); ok {
		return ExitProblems
	}
	switch {
	case adminapi.IsDenied(err):
		return ExitDenied
	case adminapi.IsDown(err):
		return exitUnreachable
	}
	switch adminapi.CodeOf(err) {
	case adminapi.CodeNotMember, adminapi.CodeNoQuorum:
		return ExitNoQuorum
	case adminapi.CodeTimeout:
		return ExitTimeout
	case adminapi.CodeRefused:
		return ExitRefused
	case adminapi.CodeMember:
		return exitMember
	case adminapi.CodeUnavailable:
		return exitUnreachable
	case adminapi.CodeUnreachable:
		return exitPeer
	case adminapi.CodeNotFound:
		return exitNotFound
	case adminapi.CodeBusy:
		return exitBusy
	}
	return ExitError
}

// PrintError prints an error as a sentence and what to do about it.
func (e *Env) PrintError(err error) {
	if _, ok := errors.AsType[SilentError](err); ok {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(e.Stderr, "saltclusterctl: interrupted")
		return
	}
	fmt.Fprintf(e.Stderr, "saltclusterctl: %v\n", err)
	hint := adminapi.HintOf(err)
	if u, ok := errors.AsType[*usageError](err); ok {
		hint = u.hint
	}
	if p, ok := errors.AsType[*problemError](err); ok {
		hint = p.hint
	}
	if hint != "" {
		fmt.Fprintf(e.Stderr, "hint: %s\n", e.services.Adapt(hint))
	}
}
