package tokens

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type metrics struct {
	received *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// newMetrics returns metrics, and registers them unless reg is nil.
func newMetrics(reg prometheus.Registerer, count func() (live, revoked int)) *metrics {
	f := metric.NewSet(reg, "eauth")
	f.NewGaugeFunc("live_tokens", "Eauth tokens that work on this node.", func() float64 {
		live, _ := count()
		return float64(live)
	})
	f.NewGaugeFunc("revoked_tokens", "Revoked eauth tokens that would not have expired yet.", func() float64 {
		_, revoked := count()
		return float64(revoked)
	})
	return &metrics{
		received: f.NewCounterVec("received_records_total", "Reports of other nodes about eauth tokens, by result.", "outcome"),
		failures: f.NewCounterVec("failures_total", "What could not be done, by operation.", "op"),
	}
}
