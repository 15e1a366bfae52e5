package keydir

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	keys      *prometheus.GaugeVec
	edits     *prometheus.CounterVec
	written   prometheus.Counter
	overruled prometheus.Counter
	failures  *prometheus.CounterVec
	seconds   prometheus.Histogram
}

// newMetrics returns the metrics, which are not registered when reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		keys: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "saltcluster_keydir_keys",
			Help: "Key files of minions on this node, by state.",
		}, []string{"state"}),
		edits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_keydir_proposals_total",
			Help: "Local edits of key files proposed to consensus, by outcome.",
		}, []string{"outcome"}),
		written: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_keydir_written_total",
			Help: "Decisions of consensus carried out on key files.",
		}),
		overruled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_keydir_overruled_total",
			Help: "Local key files that consensus overruled.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_keydir_failures_total",
			Help: "What could not be done with the key directories, by operation.",
		}, []string{"op"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_keydir_scan_seconds",
			Help:    "Time to look at all key files.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
	}
	// a rule about an increase sees the first one only where there was a zero
	for _, op := range []string{"watch", "look", "write", "save", "store"} {
		m.failures.WithLabelValues(op)
	}
	if reg != nil {
		reg.MustRegister(m.keys, m.edits, m.written, m.overruled, m.failures, m.seconds)
	}
	return m
}
