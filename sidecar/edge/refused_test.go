package edge

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/require"
)

// refusedAtOnce is how many refused requests of a connection are read before it is slowed.
const refusedAtOnce = 1000

// TestRefusedIsSlowed checks that a connection whose requests are refused is read more slowly after a while, and that
// another one of the same address, whose requests are fine, is not.
func TestRefusedIsSlowed(t *testing.T) {
	e := openReq(t, ReqConfig{}, func(r *Request) {
		if string(r.Body) == "bad" {
			r.Refused()
		}
		r.Reply(r.Body)
	})
	hostile, fine := dial(t, e, "DEALER"), dial(t, e, "REQ")
	for range int(refusedAtOnce) {
		require.NoError(t, hostile.WriteMessage(nil, []byte("bad")))
		if _, err := hostile.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	more := 0
	// on a slow machine it has recovered meanwhile
	for ; testutil.ToFloat64(e.metrics.slowed) == 0 && more < 100*int(refusedAtOnce); more++ {
		require.NoError(t, hostile.WriteMessage(nil, []byte("bad")))
		if _, err := hostile.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
	if testutil.ToFloat64(e.metrics.slowed) == 0 {
		t.Errorf("nothing was slowed; %d took %s", more, time.Since(began))
	}
	ask(t, fine, "good")
	ask(t, hostile, "good") // it only waits
}

// TestRefusedIsSlowed_LargeRequests checks that refused requests count by their size: of so few small ones none would be
// slowed, and each is hashed.
func TestRefusedIsSlowed_LargeRequests(t *testing.T) {
	e := openReq(t, ReqConfig{}, func(r *Request) {
		r.Refused()
		r.Reply(nil)
	})
	hostile, large := dial(t, e, "REQ"), make([]byte, 200<<10)
	for i := 0; testutil.ToFloat64(e.metrics.slowed) == 0; i++ {
		if i == refusedAtOnce/2 {
			t.Fatalf("%d of %d bytes, and nothing was slowed", i, len(large))
		}
		require.NoError(t, hostile.WriteMessage(nil, large))
		if _, err := hostile.ReadMessage(); err != nil {
			t.Fatal(err)
		}
	}
}
