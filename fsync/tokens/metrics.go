package tokens

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	received *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// newMetrics returns metrics, and registers them unless reg is nil.
func newMetrics(reg prometheus.Registerer, count func() (live, revoked int)) *metrics {
	m := &metrics{
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_tokens_received_total", Help: "What other nodes told about eauth tokens, by what became of it.",
		}, []string{"outcome"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_tokens_failures_total", Help: "What could not be done, by operation.",
		}, []string{"op"}),
	}
	if reg != nil {
		reg.MustRegister(m.received, m.failures, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "saltcluster_tokens_live", Help: "Eauth tokens that work on this node.",
		}, func() float64 { live, _ := count(); return float64(live) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "saltcluster_tokens_revoked", Help: "Revoked eauth tokens that would not have expired yet.",
		}, func() float64 { _, revoked := count(); return float64(revoked) }))
	}
	return m
}
