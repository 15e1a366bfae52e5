package operator

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/sidecar/health"
)

// While a lock is not released the check fails, and one call is under way, however often the check runs.
func TestLockCheck_StuckLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var looks atomic.Int64
		p := NewLockCheck(func() {
			looks.Add(1)
			<-release
		})
		ask := func() health.Level {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return p.Check(ctx).Level
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
