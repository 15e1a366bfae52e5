package jobs

import "github.com/prometheus/client_golang/prometheus"

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
	m := &metrics{
		jobs: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_jobs_known",
			Help: "Jobs in the job cache of this node's master.",
		}),
		news: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_jobs_news_total",
			Help: "Times something new was found in a job of this node.",
		}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_jobs_received_total",
			Help: "Returns and other files of jobs received from other nodes, by what became of them.",
		}, []string{"outcome"}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_jobs_sent_total",
			Help: "Returns and other files of jobs that other nodes have taken.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_jobs_sent_bytes_total",
			Help: "Bytes of them.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_jobs_failures_total",
			Help: "What could not be done, by operation.",
		}, []string{"op"}),
		scan: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_jobs_scan_seconds",
			Help:    "Time of a look at all jobs, pauses included.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.jobs, m.news, m.received, m.sent, m.bytes, m.failures, m.scan)
	}
	return m
}
