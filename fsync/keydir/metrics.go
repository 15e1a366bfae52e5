package keydir

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

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
	f := metric.NewSet(reg, "keys")
	m := &metrics{
		keys:      f.NewGaugeVec("files", "Key files of minions on this node, by state.", "state"),
		edits:     f.NewCounterVec("proposals_total", "Local edits of key files proposed to consensus, by outcome.", "outcome"),
		written:   f.NewCounter("written_files_total", "Decisions of consensus carried out on key files."),
		overruled: f.NewCounter("overruled_files_total", "Local key files that consensus overruled."),
		failures:  f.NewCounterVec("failures_total", "What could not be done with the key directories, by operation.", "op"),
		seconds:   f.NewHistogram("scan_seconds", "Time to check all key files.", 0.0005, 4, 8),
	}
	// a rule about an increase sees the first one only where there was a zero
	for _, op := range []string{"watch", "look", "write", "save", "store"} {
		m.failures.WithLabelValues(op)
	}
	return m
}
