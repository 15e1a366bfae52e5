package upstream

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
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
	f := promauto.With(reg)
	result := f.NewCounterVec(prometheus.CounterOpts{
		Name: "saltcluster_upstream_requests_total", Help: "Requests to the local salt-master by result.",
	}, []string{"result"})
	stalls := f.NewCounterVec(prometheus.CounterOpts{
		Name: "saltcluster_upstream_stalls_total",
		Help: "How often the local salt-master stood still while it was connected, by sign.",
	}, []string{"sign"})
	return &reqMetrics{
		silents: stalls.WithLabelValues(string(Silent)), stucks: stalls.WithLabelValues(string(Stuck)),
		up: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_upstream_up", Help: "Whether the local salt-master answers (1) or not (0).",
		}),
		queue: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_upstream_queue_requests", Help: "Requests waiting for a connection to the local salt-master.",
		}),
		conns: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_upstream_connections", Help: "Open request connections to the local salt-master.",
		}),
		dials: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_upstream_connects_total", Help: "Request connections opened to the local salt-master.",
		}),
		held: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_upstream_held_total",
			Help: "How often a minion's requests had to wait because the local salt-master worked on as many of the same minion as it may: calls that have a worker wait, or minion_requests_at_once.",
		}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name: "saltcluster_upstream_request_seconds", Help: "Time from the call to the salt-master's reply.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}),
		probes: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_upstream_probe_seconds",
			Help:    "Time until one of the salt-master's workers answers a small request, asked while nothing else is answered.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 12),
		}),
		ok: result.WithLabelValues("ok"), busy: result.WithLabelValues("busy"), down: result.WithLabelValues("down"),
		timeout: result.WithLabelValues("timeout"), lost: result.WithLabelValues("lost"),
		other: result.WithLabelValues("other"),
	}
}

// registerBusy shows how many of the master's workers have something to do, as far as can be seen from here.
func (m *reqMetrics) registerBusy(reg prometheus.Registerer, c *ReqClient) {
	promauto.With(reg).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "saltcluster_upstream_in_flight_requests",
		Help: "Requests of this node that the local salt-master has not answered yet: so many of its workers are busy, worker_threads at most, and others with what does not come from here.",
	}, func() float64 { return float64(c.countOwed()) })
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
	f := promauto.With(reg)
	return &subMetrics{
		up: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_upstream_sub_up", Help: "Whether the local salt-master's publications are subscribed to.",
		}),
		messages: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_upstream_publications_total", Help: "Publications received from the local salt-master.",
		}),
		connects: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_upstream_sub_connects_total", Help: "Subscriptions opened to the local salt-master.",
		}),
	}
}
