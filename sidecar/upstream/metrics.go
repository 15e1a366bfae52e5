package upstream

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type reqMetrics struct {
	replies, failures, connects atomic.Uint64 // for Stats

	up, queue, conns                     prometheus.Gauge
	dials, held                          prometheus.Counter
	silents, stucks                      prometheus.Counter
	seconds, probes                      prometheus.Histogram
	ok, busy, down, timeout, lost, other prometheus.Counter
}

func newReqMetrics(reg prometheus.Registerer) *reqMetrics {
	f := metric.NewSet(reg, "master")
	result := f.NewCounterVec("requests_total", "Requests to the local salt-master by outcome.", "outcome")
	stalls := f.NewCounterVec("stalls_total", "How often the local salt-master stopped making progress while it was connected, by sign.", "sign")
	return &reqMetrics{
		silents: stalls.WithLabelValues(string(Silent)), stucks: stalls.WithLabelValues(string(Stuck)),
		up:      f.NewGauge("up", "Whether the local salt-master answers (1) or not (0)."),
		queue:   f.NewGauge("queue_requests", "Requests waiting for a connection to the local salt-master."),
		conns:   f.NewGauge("connections", "Open request connections to the local salt-master."),
		dials:   f.NewCounter("opened_connections_total", "Request connections opened to the local salt-master."),
		held:    f.NewCounter("held_requests_total", "How often a minion's requests had to wait because the local salt-master worked on as many of the same minion as it may: calls that have a worker wait, or minion_requests_at_once."),
		seconds: f.NewHistogram("request_seconds", "Time from the call to the salt-master's reply.", 0.0005, 2.5, 12),
		probes:  f.NewHistogram("probe_seconds", "Time until one of the salt-master's workers answers a small request, which is sent while it answers nothing else.", 0.0005, 2.5, 12),
		ok:      result.WithLabelValues("ok"), busy: result.WithLabelValues("busy"), down: result.WithLabelValues("down"),
		timeout: result.WithLabelValues("timeout"), lost: result.WithLabelValues("lost"),
		other: result.WithLabelValues("other"),
	}
}

// registerBusy shows how many of the master's workers have something to do, as far as can be seen from here.
func (m *reqMetrics) registerBusy(reg prometheus.Registerer, c *ReqClient) {
	metric.NewSet(reg, "master").NewGaugeFunc("in_flight_requests", "Requests of this node that the local salt-master has not answered yet. They occupy as many of its workers, worker_threads at most.", func() float64 { return float64(c.countOwed()) })
}

func (m *reqMetrics) observeCall(begun time.Time, err error) {
	if err == nil {
		m.replies.Add(1)
		m.ok.Inc()
		m.seconds.Observe(time.Since(begun).Seconds())
		return
	}
	m.failures.Add(1)
	switch {
	case errors.Is(err, ErrBusy):
		m.busy.Inc()
	case errors.Is(err, ErrDown):
		m.down.Inc()
	case errors.Is(err, ErrTimeout):
		m.timeout.Inc()
	case errors.Is(err, ErrLost):
		m.lost.Inc()
	default:
		m.other.Inc()
	}
}

func (m *reqMetrics) countConnect() {
	m.connects.Add(1)
	m.dials.Inc()
}

func (m *reqMetrics) setUp(isUp bool) {
	if isUp {
		m.up.Set(1)
	} else {
		m.up.Set(0)
	}
}

type subMetrics struct {
	up                 prometheus.Gauge
	messages, connects prometheus.Counter
}

func newSubMetrics(reg prometheus.Registerer) *subMetrics {
	f := metric.NewSet(reg, "master")
	return &subMetrics{
		up:       f.NewGauge("subscription_up", "Whether the local salt-master's publications are subscribed to."),
		messages: f.NewCounter("publications_total", "Publications received from the local salt-master."),
		connects: f.NewCounter("opened_subscriptions_total", "Subscriptions opened to the local salt-master."),
	}
}
