package main

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/sidecar/adminapi"
)

// Exit codes; the help lists them, scripts rely on them.
const (
	exitOK          = 0
	exitError       = 1
	exitUsage       = 2
	exitUnreachable = 3
	exitNoQuorum    = 4
	exitTimeout     = 5
	exitRefused     = 6
	exitMember      = 7
	exitDenied      = 8
	exitProblems    = 10
	exitIncomplete  = 11
)

const exitCodesHelp = `EXIT CODES:
   0   ok
   1   error, or cancelled at a question
   2   invalid arguments; or --yes is missing where there is no terminal to ask at
   3   saltclusterd is not reachable
   4   this node belongs to no cluster, or a majority is not reachable
   5   it did not happen in time
   6   the cluster refused: secret, cluster_id, fingerprint, ...
   7   this node belongs to a cluster already
   8   permission denied: this user may not use the admin socket
   10  something is wrong: status --check, doctor, verify, setup --check, leave --dry-run, keys merge --dry-run; config diff found a difference
   11  verify found no difference, but could not ask every node; roots diff could not ask one
`

// usageError is a mistake in the arguments.
type usageError struct {
	message string
	hint    string
}

func (e *usageError) Error() string { return e.message }

func usagef(hint, format string, args ...any) error {
	return &usageError{message: fmt.Sprintf(format, args...), hint: hint}
}

// silentError ends with a code after the output has said everything.
type silentError struct{ code int }

func (e *silentError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// exitCode maps an error onto a documented code.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if e, ok := errors.AsType[*silentError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return exitUsage
	}
	if u, ok := errors.AsType[*adminapi.UnreachableError](err); ok {
		if u.Denied() {
			return exitDenied
		}
		return exitUnreachable
	}
	switch adminapi.CodeOf(err) {
	case adminapi.CodeDenied:
		return exitDenied
	case adminapi.CodeNotMember, adminapi.CodeNoQuorum:
		return exitNoQuorum
	case adminapi.CodeTimeout:
		return exitTimeout
	case adminapi.CodeRefused:
		return exitRefused
	case adminapi.CodeMember:
		return exitMember
	case adminapi.CodeUnavailable:
		return exitUnreachable
	}
	return exitError
}

// printError prints an error as a sentence and what to do about it.
func (e *env) printError(err error) {
	if _, ok := errors.AsType[*silentError](err); ok {
		return
	}
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(e.stderr, "saltclusterctl: interrupted")
		return
	}
	fmt.Fprintf(e.stderr, "saltclusterctl: %v\n", err)
	hint := adminapi.HintOf(err)
	if u, ok := errors.AsType[*usageError](err); ok {
		hint = u.hint
	}
	if hint != "" {
		fmt.Fprintf(e.stderr, "hint: %s\n", hint)
	}
}
