package fileserve

import (
	"os"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// One long transfer must not keep the files of all that began after it open.
func TestDropIdle_BehindPinInUse(t *testing.T) {
	tr := newTransfers(&makers{ctx: t.Context()}, make(slots, 1), time.Second)
	defer tr.close()
	now := time.Now()
	pins := make([]*pin, 2)
	for i := range pins {
		f, err := os.Open(os.DevNull)
		require.NoError(t, err)
		pins[i] = &pin{file: f, at: now.Add(-2 * transferIdle)}
		require.NoError(t, tr.keepPin(identity{ino: uint64(i)}, pins[i]))
	}
	pins[0].touchPin(now)
	tr.dropIdle()
	if pins[0].closed || !pins[1].closed {
		t.Errorf("closed: %v in use, %v idle", pins[0].closed, pins[1].closed)
	}
}
