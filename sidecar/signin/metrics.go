package signin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics counts sign-ins. With a nil registerer the metrics are not exported.
type metrics struct {
	outcomes *prometheus.CounterVec
	seconds  prometheus.Histogram
	wait     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, s *Service) *metrics {
	f := metric.NewSet(reg, "signin")
	f.NewGaugeFunc("waiting_requests", "Sign-ins waiting or being answered.", func() float64 { return float64(s.queue.len()) })
	f.NewGaugeFunc("capacity_per_second", "Sign-ins of accepted keys that this node can answer per second, as measured.", s.Rate)
	return &metrics{
		outcomes: f.NewCounterVec("requests_total", "Sign-ins (_auth), by outcome.", "outcome"),
		seconds:  f.NewHistogram("compute_seconds", "Time to compute one accepting reply.", 0.0005, 2, 12),
		wait:     f.NewHistogram("wait_seconds", "Time from a sign-in's arrival until it is processed.", 0.001, 2.5, 12),
	}
}

func (m *metrics) observeWait(r *Request) { m.wait.Observe(time.Since(r.At).Seconds()) }

func (m *metrics) countOutcome(o string) { m.outcomes.WithLabelValues(o).Inc() }
