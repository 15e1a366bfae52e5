package mines

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of a service; the methods of a nil one do nothing.
type metrics struct{ requests *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	return &metrics{requests: metric.NewSet(reg, "minion").NewCounterVec("mine_requests_total",
		"Requests of minions about mines by how they were handled without the salt-master's Python, or why that was not possible.",
		"command", "outcome")}
}

func (m *metrics) countRequest(cmd string, err error) {
	if m != nil {
		m.requests.WithLabelValues(cmd, outcomeOf(err)).Inc()
	}
}
