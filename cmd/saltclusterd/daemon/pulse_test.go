package daemon

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/sidecar/health"
)

// TestPulseCheck: while a lock is not let go of the check fails, and one look at it is under way, however often it is asked.
func TestPulseCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks, release := 0, make(chan struct{})
		p := &pulse{of: func() {
			looks++
			<-release
		}}
		ask := func() health.Level {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return p.check(ctx).Level
		}
		if a, b := ask(), ask(); a != health.Fail || b != health.Fail || looks != 1 {
			t.Errorf("stuck: %s, %s, %d looks", a, b, looks)
		}
		close(release)
		if a, b := ask(), ask(); a != health.OK || b != health.OK || looks != 2 {
			t.Errorf("well again: %s, %s, %d looks", a, b, looks)
		}
	})
}
