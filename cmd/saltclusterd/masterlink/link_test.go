package masterlink

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltlog"
	"saltclusterd/sidecar/saltwire"
)

// TestLink_NotifySignInLogs checks that a sign-in is in the log in the words of a stock master, which rules of operators
// look for, where the master would log it.
func TestLink_NotifySignInLogs(t *testing.T) {
	for level, want := range map[string]bool{"info": true, "warning": false} {
		var out bytes.Buffer
		master := configtest.Load(t, 3008, "auth_events: False\nlog_level: "+level+"\n")
		l := &Link{Followed: newFollowed(master, "")}
		l.Log = saltlog.New(slog.New(slog.NewTextHandler(&out, nil)), func() bool { return l.Followed.Load().Informs })
		require.NoError(t, l.Followed.Use(master))
		l.NotifySignIn(t.Context(), saltwire.AuthRequest{ID: "web1"})
		if got := strings.Contains(out.String(), "Authentication accepted from web1"); got != want {
			t.Errorf("%s: logged %q", level, &out)
		}
	}
}

func TestWaitersOf(t *testing.T) {
	for workers, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 1, 4: 2, 5: 2, 6: 3, 24: 12} {
		if got := waitersOf(workers); got != want {
			t.Errorf("of %d workers %d wait for one minion, not %d", workers, got, want)
		}
	}
}
