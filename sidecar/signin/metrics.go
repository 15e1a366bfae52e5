package signin

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts sign-ins. With a nil registerer the metrics are not exported.
type metrics struct {
	outcomes *prometheus.CounterVec
	seconds  prometheus.Histogram
	wait     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, s *Service) *metrics {
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
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_signin_wait_seconds",
			Help:    "Time from a sign-in's arrival until it is looked at.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.outcomes, m.seconds, m.wait,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "saltcluster_signin_waiting", Help: "Sign-ins waiting or being answered.",
			}, func() float64 { return float64(s.queue.len()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "saltcluster_signin_rate",
				Help: "Sign-ins of accepted keys that this node can answer per second, as measured.",
			}, s.Rate))
	}
	return m
}

func (m *metrics) observeWait(r *Request) { m.wait.Observe(time.Since(r.At).Seconds()) }

func (m *metrics) countOutcome(o string) { m.outcomes.WithLabelValues(o).Inc() }
