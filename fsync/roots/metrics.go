package roots

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type metrics struct {
	base, head, conflicts prometheus.Gauge
	files                 prometheus.Gauge
	scans, switches       prometheus.Histogram
	fetched, sent         prometheus.Counter
	proposals             *prometheus.CounterVec
	failures              *prometheus.CounterVec
}

// newMetrics returns metrics, and registers them unless reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.NewSet(reg, "roots")
	return &metrics{
		base:      f.NewGauge("base_revision", "Revision that is on this disk."),
		head:      f.NewGauge("head_revision", "Newest revision in force."),
		conflicts: f.NewGauge("conflicts", "Files that were put aside."),
		files:     f.NewGauge("files", "Files in the slots of this node."),
		fetched:   f.NewCounter("fetched_bytes_total", "Content fetched from peers."),
		sent:      f.NewCounter("sent_bytes_total", "Content sent to peers, packed."),
		scans:     f.NewHistogram("scan_seconds", "Time to scan all slots.", 0.001, 4, 9),
		switches:  f.NewHistogram("switch_seconds", "Time for which a switch delayed requests.", 0.001, 4, 9),
		proposals: f.NewCounterVec("proposals_total", "Revisions proposed, by outcome.", "outcome"),
		failures:  f.NewCounterVec("failures_total", "What could not be done, by operation.", "op"),
	}
}
