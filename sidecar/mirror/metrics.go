package mirror

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type metrics struct {
	sent, shown prometheus.Counter
	dropped     *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.NewSet(reg, "mirror")
	return &metrics{
		sent:    f.NewCounter("sent_events_total", "Events of the local master sent to other nodes, once for each."),
		shown:   f.NewCounter("shown_events_total", "Events of other masters fired on the local bus."),
		dropped: f.NewCounterVec("dropped_events_total", "Events that were not mirrored, by reason.", "reason"),
	}
}

func (m *metrics) countDropped(reason string, n int) {
	if n > 0 {
		m.dropped.WithLabelValues(reason).Add(float64(n))
	}
}
