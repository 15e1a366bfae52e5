package daemon

import (
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
)

// awaitAdoption waits until the keys in the founder's directories are the cluster's, and says how many there are. The node serves
// meanwhile, so that this takes long is no reason to fail.
func (d *Daemon) awaitAdoption(ctx context.Context, p admin.Progress) {
	said := time.Now()
	for {
		m := d.current()
		if m == nil || m.svc == nil {
			return
		}
		if m.svc.dir.Settled() {
			p("keys", "taken over: "+countKeys(m.cons.View()))
			return
		}
		if time.Since(said) > sayEvery {
			p("keys", "taken over so far: "+countKeys(m.cons.View()))
			said = time.Now()
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			p("keys", "the others follow; saltclusterctl keys list counts them")
			return
		}
	}
}

// countKeys says how many minion keys there are, and in which states.
func countKeys(v state.View) string {
	n := map[state.KeyState]int{}
	v.Keys(func(k state.Key) bool {
		n[k.State]++
		return true
	})
	var parts []string
	for _, s := range []state.KeyState{state.KeyAccepted, state.KeyPending, state.KeyRejected} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if len(parts) == 0 {
		return "no minion keys"
	}
	return "minion keys, " + strings.Join(parts, ", ")
}
