package rotation

import (
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/require"
)

// A certificate that was made by a clock of the future is renewed: else it would stay until that has come.
func TestCertificates_IsAged(t *testing.T) {
	dir := t.TempDir()
	own, err := peer.LoadIdentity(dir, "m1")
	require.NoError(t, err)
	now := time.Now()
	for _, c := range []struct {
		ahead, limit time.Duration
		want         bool
	}{
		{0, 24 * time.Hour, false}, {5 * time.Minute, 24 * time.Hour, false}, {-25 * time.Hour, 24 * time.Hour, true},
		{9000 * time.Hour, 24 * time.Hour, true}, {9000 * time.Hour, 0, false},
	} {
		if _, _, err := own.Renew(dir, now.Add(c.ahead)); err != nil {
			t.Fatal(err)
		}
		certificates := &Certificates{cfg: CertificatesConfig{
			Membership: Membership{Self: "m1"}, Identity: own, StateDir: dir, MaxAge: c.limit,
		}}
		if got := certificates.isAged(now); got != c.want {
			t.Errorf("made %s ahead, renewed after %s: %t", c.ahead, c.limit, got)
		}
	}
}

// Nodes take turns, and never much earlier than was asked for.
func TestEarlyBy(t *testing.T) {
	seen := map[time.Duration]bool{}
	for _, id := range []node.ID{"m1", "m2", "m3", "db.example.com"} {
		e := earlyBy(id, 1000*time.Hour)
		if e < 0 || e > 100*time.Hour {
			t.Errorf("%s: %s", id, e)
		}
		seen[e] = true
	}
	if len(seen) < 3 {
		t.Error("all at the same time")
	}
}
