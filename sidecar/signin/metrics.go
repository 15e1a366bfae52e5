package signin

import "github.com/prometheus/client_golang/prometheus"

// metrics counts sign-ins. A nil registerer gives metrics that nobody reads.
type metrics struct {
	outcomes *prometheus.CounterVec
	seconds  prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_signin_total",
			Help: "Sign-ins (_auth), by outcome.",
		}, []string{"outcome"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_signin_compute_seconds",
			Help:    "Time to compute one accepting reply.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 12),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.outcomes, m.seconds)
	}
	return m
}

func (m *metrics) outcome(o string) { m.outcomes.WithLabelValues(o).Inc() }
