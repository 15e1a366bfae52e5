package mirror

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	sent, shown prometheus.Counter
	dropped     *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_mirror_sent_events_total", Help: "Events of the local master sent to other nodes, once for each.",
		}),
		shown: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_mirror_shown_events_total", Help: "Events of other masters fired on the local bus.",
		}),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_mirror_dropped_events_total",
			Help: "Events that were to be mirrored and were not: the queue was full, too old, too large, the bus takes none, not to be mirrored.",
		}, []string{"reason"}),
	}
	if reg != nil {
		reg.MustRegister(m.sent, m.shown, m.dropped)
	}
	return m
}

func (m *metrics) countDropped(reason string, n int) {
	if n > 0 {
		m.dropped.WithLabelValues(reason).Add(float64(n))
	}
}
