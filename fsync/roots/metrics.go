package roots

import "github.com/prometheus/client_golang/prometheus"

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
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "saltcluster_roots_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "saltcluster_roots_" + name, Help: help})
	}
	m := &metrics{
		base:      gauge("base_revision", "Revision that is on this disk."),
		head:      gauge("head_revision", "Newest revision in force."),
		conflicts: gauge("conflicts", "Files that were put aside."),
		files:     gauge("files", "Files in the slots of this node."),
		fetched:   counter("fetched_bytes", "Content fetched from peers."),
		sent:      counter("sent_bytes", "Content sent to peers, packed."),
		scans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "saltcluster_roots_scan_seconds", Help: "Time to look at all slots.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		switches: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "saltcluster_roots_switch_seconds", Help: "Time for which a switch held up requests.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
		proposals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_roots_proposals_total", Help: "Revisions proposed, by what became of them.",
		}, []string{"result"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_roots_failures_total", Help: "What could not be done, by operation.",
		}, []string{"op"}),
	}
	if reg != nil {
		reg.MustRegister(m.base, m.head, m.conflicts, m.files, m.fetched, m.sent, m.scans, m.switches, m.proposals,
			m.failures)
	}
	return m
}
