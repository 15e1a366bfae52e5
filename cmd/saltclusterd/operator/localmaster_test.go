package operator

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/sidecar"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/upstream"
)

// The row of the salt-master says why saltclusterd is not signed in there, without words that only its source has.
func TestDescribeSignIn(t *testing.T) {
	for _, err := range []error{
		nil, sidecar.ErrForeignIdentity, localmaster.ErrStaleIdentity, localmaster.ErrHiddenPending,
		localmaster.ErrHiddenRejected, localmaster.ErrHiddenFull, fmt.Errorf("%w: another nonce", localmaster.ErrHiddenReply),
		upstream.ErrDown, upstream.ErrLost, upstream.ErrBusy,
		upstream.ErrTimeout, context.DeadlineExceeded, fmt.Errorf("%w: %w", upstream.ErrDown, syscall.ECONNREFUSED),
	} {
		got := describeSignIn(err)
		for _, word := range []string{"hidden", "localmaster", "upstream", "context", "nonce", "%!"} {
			if got == "" || strings.Contains(got, word) {
				t.Errorf("%v: %q", err, got)
			}
		}
	}
	if got := describeSignIn(fmt.Errorf("%w: %w", upstream.ErrDown, syscall.ECONNREFUSED)); got != "connection refused" {
		t.Errorf("nothing listens there: %q", got)
	}
}

// A salt-master that has just come up is waited for; one that drops every sign-in is not waited for long.
func TestIsArriving(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, c := range []struct {
		what    string
		down    bool
		since   time.Time
		failing time.Time
		err     error
		want    bool
	}{
		{what: "not tried yet", since: ago(time.Second), want: true},
		{what: "never tried", since: ago(time.Hour)},
		{
			what: "came up after an hour of failures", since: ago(time.Second), failing: ago(time.Hour),
			err: upstream.ErrDown, want: true,
		},
		{
			what: "lost while it starts", since: ago(5 * time.Second), failing: ago(4 * time.Second),
			err: upstream.ErrLost, want: true,
		},
		{what: "drops every sign-in", since: ago(time.Hour), failing: ago(signInTime), err: upstream.ErrLost},
		{what: "restarted unseen", since: ago(time.Hour), failing: ago(time.Second), err: upstream.ErrLost, want: true},
		{what: "refuses", since: ago(time.Second), failing: ago(time.Second), err: localmaster.ErrHiddenRejected},
		{what: "down", down: true, failing: ago(time.Second), err: upstream.ErrDown},
	} {
		if got := isArriving(upstream.ReqStats{Up: !c.down, Since: c.since}, c.failing, c.err, now); got != c.want {
			t.Errorf("%s: %t", c.what, got)
		}
	}
}
