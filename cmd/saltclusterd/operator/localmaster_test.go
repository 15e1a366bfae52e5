package operator

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/sidecar"
	"saltclusterd/sidecar/health"
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

// fakeMaster is the connection to a salt-master in some state.
type fakeMaster struct {
	stats    upstream.ReqStats
	subUp    bool
	signedIn bool
	err      error
}

func (m fakeMaster) Stats() upstream.ReqStats { return m.stats }
func (m fakeMaster) Up() bool                 { return m.stats.Up }
func (m fakeMaster) State() (bool, error)     { return m.signedIn, m.err }
func (m fakeMaster) FailingSince() time.Time  { return time.Time{} }

type fakePublications bool

func (p fakePublications) Up() bool { return bool(p) }

func TestLocalMaster_Problem(t *testing.T) {
	up := upstream.ReqStats{Up: true, Since: time.Now().Add(-time.Hour)}
	silent, stuck := upstream.ReqStats{Up: true, Stalled: upstream.Silent}, upstream.ReqStats{Up: true,
		Stalled: upstream.Stuck}
	justUp := upstream.ReqStats{Up: true, Since: time.Now()}
	for _, c := range []struct {
		name   string
		m      fakeMaster
		text   string // empty: no problem
		serves bool
	}{
		{"all is well", fakeMaster{stats: up, subUp: true, signedIn: true}, "", true},
		{"stopped", fakeMaster{stats: silent, signedIn: true}, "makes no progress", true},
		{"stuck", fakeMaster{stats: stuck, signedIn: true}, "none of its workers", true},
		{"down", fakeMaster{}, "correct the salt-master's configuration", false},
		{"old key", fakeMaster{stats: up, err: sidecar.ErrForeignIdentity}, "it still presents its old master.pub", false},
		{"just up", fakeMaster{stats: justUp, err: upstream.ErrDown}, "has started", false},
		{"refuses", fakeMaster{stats: up, err: localmaster.ErrHiddenRejected}, "it refuses saltclusterd's own key", false},
		{"no publications", fakeMaster{stats: up, signedIn: true}, "does not publish at", true},
	} {
		m := &LocalMaster{
			Requests: c.m, Publications: fakePublications(c.m.subUp), SignIn: c.m, Options: &localmaster.Config{},
			ConfigPath: "/no/such/file", ShareHangs: func() bool { return false }, Outdated: func() bool { return false },
		}
		if got := m.Problem(); (got == "") != (c.text == "") || !strings.Contains(got, c.text) || m.Serves() != c.serves {
			t.Errorf("%s: %q, serves: %t", c.name, got, m.Serves())
		}
		if r := m.CheckOwn(); (r.Level == health.OK) != (c.text == "") || !strings.Contains(r.Hint, c.text) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if r := m.Report(); r.Up != c.m.stats.Up || r.Subscribed != c.m.subUp || r.SignedIn != c.m.signedIn {
			t.Errorf("%s: report is %+v", c.name, r)
		}
	}
}
