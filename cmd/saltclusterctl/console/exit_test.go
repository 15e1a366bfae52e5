package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

func TestExitCodes(t *testing.T) {
	tests := []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), ExitError},
		{Usagef("", "x"), ExitUsage},
		{&adminapi.UnreachableError{Err: errors.New("x")}, exitUnreachable},
		{adminapi.Errorf(adminapi.CodeDenied, "", "x"), ExitDenied},
		{&adminapi.UnreachableError{Err: syscall.EACCES}, ExitDenied},
		{fmt.Errorf("y: %w", adminapi.Errorf(adminapi.CodeNotMember, "", "x")), ExitNoQuorum},
		{adminapi.Errorf(adminapi.CodeTimeout, "", "x"), ExitTimeout},
		{adminapi.Errorf(adminapi.CodeRefused, "", "x"), ExitRefused},
		{adminapi.Errorf(adminapi.CodeMember, "", "x"), exitMember},
		{adminapi.Errorf(adminapi.CodeInternal, "", "x"), ExitError},
		{adminapi.Errorf(adminapi.CodeUnreachable, "", "x"), exitPeer},
		{adminapi.Errorf(adminapi.CodeNotFound, "", "x"), exitNotFound},
		{adminapi.Errorf(adminapi.CodeBusy, "", "x"), exitBusy},
		{Problemf("", "x"), ExitProblems},
		{SilentError(ExitProblems), ExitProblems},
	}
	for _, tt := range tests {
		check.Equal(t, ExitCode(tt.err), tt.want, tt.err)
		if tt.want != exitOK && !strings.Contains(ExitCodesHelp, fmt.Sprintf("\n   %d ", tt.want)) {
			t.Errorf("exit code %d is not in the help", tt.want)
		}
	}
}

func TestReport(t *testing.T) {
	var out bytes.Buffer
	e := &Env{Stderr: &out}
	e.PrintError(SilentError(1))
	e.PrintError(fmt.Errorf("ask: %w", context.Canceled))
	check.Equal(t, out.String(), "saltclusterctl: interrupted\n")
}
