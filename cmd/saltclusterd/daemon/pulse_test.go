package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/sidecar/health"
)

// TestPulseCheck: while a lock is not let go of the check fails, and one look at it is under way, however often it is asked.
func TestPulseCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var looks atomic.Int64
		p := &pulse{of: func() {
			looks.Add(1)
			<-release
		}}
		ask := func() health.Level {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return p.check(ctx).Level
		}
		if a, b := ask(), ask(); a != health.Fail || b != health.Fail || looks.Load() != 1 {
			t.Errorf("stuck: %s, %s, %d looks", a, b, looks.Load())
		}
		close(release)
		if a, b := ask(), ask(); a != health.OK || b != health.OK || looks.Load() != 2 {
			t.Errorf("well again: %s, %s, %d looks", a, b, looks.Load())
		}
	})
}
