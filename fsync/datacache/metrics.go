package datacache

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	news     prometheus.Counter
	received *prometheus.CounterVec
	sent     prometheus.Counter
	bytes    prometheus.Counter
	purged   prometheus.Counter
	failures *prometheus.CounterVec
	scan     prometheus.Histogram
	waiting  prometheus.Gauge
}

// newMetrics returns the metrics, which are not registered when reg is nil.
func newMetrics(reg prometheus.Registerer, k Kind, minions func() int) *metrics {
	m := &metrics{
		news: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_datacache_news_total",
			Help: "Times the local master had new data of a minion.",
		}),
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_datacache_received_total",
			Help: "Records received from other nodes, by what became of them.",
		}, []string{"outcome"}),
		sent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_datacache_sent_total",
			Help: "Records other nodes have taken.",
		}),
		bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_datacache_sent_bytes",
			Help: "Bytes other nodes have taken.",
		}),
		purged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_datacache_purged_total",
			Help: "Minions whose data went with their key.",
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_datacache_failures_total",
			Help: "What could not be done, by operation.",
		}, []string{"op"}),
		scan: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_datacache_scan_seconds",
			Help:    "Time to look at the data of all minions.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 4, 8),
		}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_datacache_waiting_changes",
			Help: "Changes of mines that wait for their turn or for a place.",
		}),
	}
	if reg != nil {
		reg = prometheus.WrapRegistererWith(prometheus.Labels{"kind": k.String()}, reg)
		reg.MustRegister(m.news, m.received, m.sent, m.bytes, m.purged, m.failures, m.scan, m.waiting,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{
				Name: "saltcluster_datacache_minions", Help: "Minions whose cached data are known on this node.",
			}, func() float64 { return float64(minions()) }))
	}
	return m
}
