package jobcache_test

import (
	"fmt"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
)

// TestAllocations: what a return and an event take from the load to the files, or to the plan of what is fired. Unlike
// times they do not depend on the machine.
func TestAllocations(t *testing.T) {
	c, _ := newCache(t, stockOptions())
	at := time.Now()
	plan := func(load []byte) jobcache.Plan {
		p, err := c.Plan(load, jobcache.Facts{Received: at})
		require.NoError(t, err)
		return p
	}
	event := wire(t, dict{"cmd", "_minion_event", "id", "m1", "tag", "site/backup/done", "data",
		dict{"volume", "data", "seconds", 3}, "pretag", nil})
	one := wire(t, ret(testJID, "m1"))
	const runs = 100
	loads := make([][]byte, 0, 2*runs) // each of a job that is known, of a minion that has not returned
	for i := range cap(loads) {
		loads = append(loads, wire(t, ret(testJID, fmt.Sprint("web", i))))
	}
	next := 0
	for _, h := range []struct {
		name    string
		do      func()
		ceiling float64
	}{
		{"a return is planned", func() { plan(one) }, 55},
		{"an event is planned", func() { plan(event) }, 35},
		{"a return is kept", func() {
			p := plan(loads[next])
			next++
			require.NoError(t, c.Apply(t.Context(), p))
		}, 80},
	} {
		h.do()
		n := testing.AllocsPerRun(runs, h.do)
		t.Logf("%s: %.0f allocations", h.name, n)
		if n > h.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", h.name, n, h.ceiling)
		}
	}
}
