package daemon

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"saltclusterd/sidecar"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/upstream"
)

// The row of the salt-master in status says why saltclusterd is not signed in there, without a word that only its source has.
func TestWhyNotSignedIn(t *testing.T) {
	for _, err := range []error{
		nil, sidecar.ErrForeignIdentity, localmaster.ErrStaleIdentity, localmaster.ErrHiddenPending, localmaster.ErrHiddenRejected,
		localmaster.ErrHiddenFull, fmt.Errorf("%w: another nonce", localmaster.ErrHiddenReply), upstream.ErrDown, upstream.ErrLost, upstream.ErrBusy,
		upstream.ErrTimeout, context.DeadlineExceeded, fmt.Errorf("%w: %w", upstream.ErrDown, syscall.ECONNREFUSED),
	} {
		got := signInProblem(err)
		for _, word := range []string{"hidden", "localmaster", "upstream", "context", "nonce", "%!"} {
			if got == "" || strings.Contains(got, word) {
				t.Errorf("%v: %q", err, got)
			}
		}
	}
	if got := signInProblem(fmt.Errorf("%w: %w", upstream.ErrDown, syscall.ECONNREFUSED)); got != "connection refused" {
		t.Errorf("nothing listens there: %q", got)
	}
}
