package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type metrics struct {
	requests *prometheus.CounterVec
	refused  prometheus.Counter
}

// newMetrics returns nil for a nil registerer; all methods take a nil receiver.
func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(reg, "admin")
	return &metrics{
		requests: f.NewCounterVec("requests_total", "Admin API requests by verb and outcome code.", "verb", "code"),
		refused:  f.NewCounter("refused_connections_total", "Admin connections closed because too many were open."),
	}
}

func (m *metrics) countRequest(verb, code string) {
	if m != nil {
		m.requests.WithLabelValues(verb, code).Inc()
	}
}

func (m *metrics) countRefused() {
	if m != nil {
		m.refused.Inc()
	}
}
