package edge

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"
)

// complainEvery bounds the log lines that hostile peers can cause.
const complainEvery = time.Second

// complaints logs why peers are cut: at most one line per second and edge at
// warning level, the rest are counted into the next.
type complaints struct {
	log     *slog.Logger
	last    atomic.Int64
	skipped atomic.Int64
}

func (c *complaints) say(r Reason, remote netip.AddrPort, err error) {
	if r.ours() {
		c.log.Debug("connection ended", "reason", r.String(), "remote", remote)
		return
	}
	now, last := clock(), c.last.Load()
	if last != 0 && now-last < int64(complainEvery) || !c.last.CompareAndSwap(last, now) {
		c.skipped.Add(1)
		return
	}
	c.log.Warn("connection cut", "reason", r.String(), "remote", remote, "err", err, "more", c.skipped.Swap(0))
}
