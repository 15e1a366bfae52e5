package guard

import (
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

const (
	logEvery   = time.Minute // one line per reason and address
	logSenders = 1024        // reasons and addresses remembered
	maxLogID   = 255
)

// reportRefusal counts a refusal and logs it, if that was not done for the same reason and address a moment ago.
func (g *Guard) reportRefusal(reason Reason, id, cmd string, remote netip.AddrPort) {
	g.metrics.refused.WithLabelValues(string(reason)).Inc()
	g.cfg.Wall.Refused(string(reason), id)
	g.logLimited("request refused", reason, id, cmd, remote)
}

// logLimited logs what was found, if that was not done for the same reason and address a moment ago.
func (g *Guard) logLimited(what string, reason Reason, id, cmd string, remote netip.AddrPort) {
	suppressed, ok := g.log.allowLog(reason, remote.Addr())
	if !ok {
		return
	}
	args := []any{"reason", string(reason), "remote", remote.String()}
	if id != "" {
		args = append(args, "minion", id[:min(len(id), maxLogID)])
	}
	if cmd != "" {
		args = append(args, "cmd", cmd[:min(len(cmd), maxLogID)])
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	g.cfg.Logger.Warn(what, args...)
}

// limiter lets one event per reason and address through in a while. It remembers a bounded number of them; when there
// are more, those share one allowance per reason.
type limiter struct {
	now func() time.Time

	mu    sync.Mutex
	m     map[sender]*allowance
	swept time.Time
}

type sender struct {
	reason Reason
	addr   netip.Addr // an IPv6 host by its /64, all of whose addresses it may use; zero: all that find no room
}

type allowance struct {
	next       time.Time
	suppressed int
}

func newLimiter(now func() time.Time) *limiter { return &limiter{now: now, m: map[sender]*allowance{}} }

// allowLog says whether to log now, and how many were not logged since the last time.
func (l *limiter) allowLog(reason Reason, addr netip.Addr) (suppressed int, ok bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.findAllowance(sender{reason, networkOf(addr)}, now)
	if now.Before(a.next) {
		a.suppressed++
		return 0, false
	}
	suppressed = a.suppressed
	a.suppressed, a.next = 0, now.Add(logEvery)
	return suppressed, true
}

func (l *limiter) findAllowance(s sender, now time.Time) *allowance {
	if a, ok := l.m[s]; ok {
		return a
	}
	if len(l.m) >= logSenders && now.Sub(l.swept) >= time.Second {
		l.dropExpired(now)
	}
	if len(l.m) >= logSenders {
		s.addr = netip.Addr{}
		if a, ok := l.m[s]; ok {
			return a
		}
	}
	a := &allowance{}
	l.m[s] = a
	return a
}

func (l *limiter) dropExpired(now time.Time) {
	l.swept = now
	for s, a := range l.m {
		if now.After(a.next) {
			delete(l.m, s)
		}
	}
}

func networkOf(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}

type metrics struct{ refused *prometheus.CounterVec }

// newMetrics returns metrics, which are not registered when reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	return &metrics{refused: metric.NewSet(reg, "minion").NewCounterVec("refused_requests_total",
		"Requests refused before they reached a master, by reason.", "reason")}
}
