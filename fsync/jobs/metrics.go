package jobs

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type metrics struct {
	jobs     prometheus.Gauge
	news     prometheus.Counter
	received *prometheus.CounterVec
	sent     prometheus.Counter
	bytes    prometheus.Counter
	failures *prometheus.CounterVec
	scan     prometheus.Histogram
}

// newMetrics returns the metrics, which are not registered when reg is nil.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.NewSet(reg, "jobs")
	return &metrics{
		jobs:     metric.NewSet(reg, "jobcache").NewGauge("jobs", "Jobs in the job cache of this node's master."),
		news:     f.NewCounter("changes_total", "Times something new was found in a job of this node."),
		received: f.NewCounterVec("received_files_total", "Returns and other files of jobs received from other nodes, by outcome.", "outcome"),
		sent:     f.NewCounter("sent_files_total", "Returns and other files of jobs that other nodes have taken."),
		bytes:    f.NewCounter("sent_bytes_total", "Bytes of returns and other files of jobs that other nodes have taken."),
		failures: f.NewCounterVec("failures_total", "What could not be done, by operation.", "op"),
		scan:     f.NewHistogram("scan_seconds", "Time of a scan of all jobs, pauses included.", 0.001, 4, 9),
	}
}
