package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Whoever makes a cluster out of a master hears how many of its minion keys it has when it is done.
func TestBootstrapSaysHowManyKeys(t *testing.T) {
	t.Parallel()
	a := newLaidNode(t, "a")
	pub := minionKey(t)
	for i, dir := range []string{"minions", "minions", "minions_pre", "minions_rejected"} {
		path := filepath.Join(a.dir, "etc/salt/pki/master", dir, fmt.Sprint("web", i))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, path, pub, 0o644)
	}
	var mu sync.Mutex
	var said []string
	hear := func(step, message string, _ ...int) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, step+": "+message)
	}
	if _, err := a.Bootstrap(t.Context(), adminapi.BootstrapRequest{Wait: true, Timeout: time.Minute}, hear); err != nil {
		t.Fatal(err)
	}
	if want := "keys: taken over: minion keys, 2 accepted, 1 pending, 1 rejected"; !slices.Contains(said, want) {
		t.Errorf("said %q", said)
	}
	if n := a.current().cons.View().KeyCount(); n != 4 {
		t.Errorf("%d keys", n)
	}
}
