package netconn

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"
)

// logEvery bounds the log lines that hostile peers can cause.
const logEvery = time.Second

// CutLog logs why peers are cut: at most one line per second and edge at
// warning level, the rest are counted into the next.
type CutLog struct {
	Logger  *slog.Logger
	last    atomic.Int64
	skipped atomic.Int64
}

// Ended logs one end.
func (c *CutLog) Ended(r Reason, remote netip.AddrPort, err error) {
	if r.ours() {
		c.Logger.Debug("connection ended", "reason", r.String(), "remote", remote)
		return
	}
	now, last := Clock(), c.last.Load()
	if last != 0 && now-last < int64(logEvery) || !c.last.CompareAndSwap(last, now) {
		c.skipped.Add(1)
		return
	}
	c.Logger.Warn("connection cut", "reason", r.String(), "remote", remote, "err", err, "more", c.skipped.Swap(0))
}
