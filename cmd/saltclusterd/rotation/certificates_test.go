package rotation

import (
	"testing"
	"time"

	"saltclusterd/gossip/node"
)

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
