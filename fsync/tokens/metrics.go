package tokens

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	live     prometheus.Gauge
	revoked  prometheus.Gauge
	received *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// newMetrics returns metrics, and registers them unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		live: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_tokens_live", Help: "Eauth tokens that work on this node.",
		}),
		revoked: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_tokens_revoked", Help: "Revoked eauth tokens that would not have expired yet.",
		}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_tokens_received_total", Help: "What other nodes told about eauth tokens, by what became of it.",
		}, []string{"outcome"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_tokens_failures_total", Help: "What could not be done, by operation.",
		}, []string{"op"}),
	}
	if reg != nil {
		reg.MustRegister(m.live, m.revoked, m.received, m.failures)
	}
	return m
}
