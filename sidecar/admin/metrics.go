package admin

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	requests *prometheus.CounterVec
	refused  prometheus.Counter
}

// newMetrics returns nil for a nil registerer; all methods take a nil receiver.
func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_admin_requests_total", Help: "Admin API requests by verb and outcome code.",
		}, []string{"verb", "code"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_admin_connections_refused_total", Help: "Admin connections closed because too many were open.",
		}),
	}
	reg.MustRegister(m.requests, m.refused)
	return m
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
