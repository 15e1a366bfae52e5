package fanout

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/sidecar/edge"
)

// TestSplitFairly wants the subscribers of one network not to keep those of another waiting, who have come later.
func TestSplitFairly(t *testing.T) {
	const stranger, minion = "192.0.2.1", "192.0.2.2"
	arrivals := [][]string{{stranger, stranger, stranger, stranger}, {minion}, {stranger, minion}}
	for _, c := range []struct {
		room          int
		served, later string // how many of which arrival
	}{
		{1, "0:1", "0:3 1:1 2:2"},
		{2, "0:1 1:1", "0:3 2:2"},
		{4, "0:2 1:1 2:1", "0:2 2:1"},
		{6, "0:4 1:1 2:1", "2:1"},
		{7, "0:4 1:1 2:2", ""},
	} {
		var ready []arrival
		var networks []netip.Addr
		for i, from := range arrivals {
			ready = append(ready, arrival{who: make([]edge.Newcomer, len(from)), came: time.Unix(int64(i), 0)})
			for _, addr := range from {
				networks = append(networks, netip.MustParseAddr(addr))
			}
		}
		served, later := splitFairly(ready, c.room, func(edge.Newcomer) netip.Addr {
			next := networks[0]
			networks = networks[1:]
			return next
		})
		for what, got := range map[string][]arrival{c.served: served, c.later: later} {
			text := ""
			for _, a := range got {
				text += fmt.Sprintf(" %d:%d", a.came.Unix(), len(a.who))
			}
			if text != "" {
				text = text[1:]
			}
			if text != what {
				t.Errorf("room for %d: %q, want %q", c.room, text, what)
			}
		}
	}
}
