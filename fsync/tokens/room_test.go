package tokens

import (
	"fmt"
	"os"
	"testing"
	"time"

	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/require"
)

// A full table takes no token, and every revocation: else an older copy of the token would be taken once there is room.
func TestStore_RevokeWhenFull(t *testing.T) {
	own := t.TempDir()
	cfg := Config{Config: replicatest.NewNet().Config("a", own), Master: localMaster(3006, own), Timing: quick}
	cfg.Now = time.Now
	s, err := New(cfg)
	require.NoError(t, err)
	root, err := os.OpenRoot(own)
	require.NoError(t, err)
	defer root.Close()
	later := time.Now().Add(time.Hour).Unix()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, full := range []int{maxLive, maxTokens} {
		for n := len(s.table.entries); n < full; n++ {
			s.table.entries[fingerprintOf(fmt.Sprint("filler", n))] = entry{expire: later}
		}
		revokedElsewhere := fingerprintOf(secret(i))
		if s.hasRoom(revokedElsewhere) {
			t.Errorf("room for a live one beside %d", full)
		}
		what, err := s.acceptItem(root, nil, item{fingerprint: revokedElsewhere, expire: later, revoked: true}, false)
		if err != nil || what != revoked || !s.table.entries[revokedElsewhere].revoked {
			t.Errorf("with %d entries a revocation is %s, %v", full, what, err)
		}
	}
	if n := len(s.table.entries); n > maxTokens {
		t.Errorf("%d entries", n)
	}
}
