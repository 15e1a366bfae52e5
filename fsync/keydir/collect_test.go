package keydir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/integration/require"
)

// collected lists what Collect says in the words of the other tests.
func collected(t *testing.T, pki string, g *mmapkeys.Geometry) (string, []string) {
	t.Helper()
	found, odd, err := Collect(t.Context(), pki, g)
	require.NoError(t, err)
	k := keyTexts()
	var parts []string
	for _, f := range found {
		st := string(f.State)
		if f.Denied {
			st = "denied"
		}
		for i, text := range k {
			if f.Pub == text {
				parts = append(parts, fmt.Sprintf("%s %s %d", f.ID, st, i))
			}
		}
	}
	return strings.Join(parts, ", "), odd
}

func TestCollect(t *testing.T) {
	k, n := keyTexts(), newTestNode(t, "m1", nil)
	if got, odd := collected(t, filepath.Join(n.pki, "none"), nil); got != "" || len(odd) != 0 {
		t.Errorf("nothing: %s, %v", got, odd)
	}
	n.put(acceptedDir, "web1", k[0])
	n.put(pendingDir, "web1", k[1]) // a move that somebody has cut off
	n.put(deniedDir, "web1", k[2])
	n.put(pendingDir, "db1", k[1])
	n.put(rejectedDir, "web1", k[0])
	n.put(acceptedDir, "app1", k[3])
	n.put(acceptedDir, ".saltclusterd", k[3])
	n.put(acceptedDir, "half", "-----BEGIN PUBLIC KEY-----")
	require.NoError(t, os.Symlink(n.path(acceptedDir, "app1"), n.path(acceptedDir, "link")))
	got, odd := collected(t, n.pki, nil)
	if want := "app1 accepted 3, db1 pending 1, web1 rejected 0, web1 denied 2"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if len(odd) != 2 || !strings.HasSuffix(odd[0], "minions/half") || !strings.HasSuffix(odd[1], "minions/link") {
		t.Errorf("odd: %v", odd)
	}
}

// A store has the last word; an accepted key file that it does not know is one that nobody has seen.
func TestCollectFromAStore(t *testing.T) {
	k, n := keyTexts(), newTestNode(t, "m1", nil)
	withStore(n)
	n.put(acceptedDir, "web1", k[0])
	if got, _ := collected(t, n.pki, n.store); got != "web1 accepted 0" {
		t.Errorf("without a store: %s", got)
	}
	n.saltKey(mmapkeys.Accepted, "db1", k[1])
	n.saltKey(mmapkeys.Rejected, "web2", k[2])
	n.put(pendingDir, "web2", k[2])
	n.saltDenied("db1", k[3])
	if got, _ := collected(t, n.pki, n.store); got != "db1 accepted 1, db1 denied 3, web1 pending 0, web2 rejected 2" {
		t.Errorf("%s", got)
	}
}
