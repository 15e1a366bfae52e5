package datacache

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

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
	if reg != nil {
		reg = prometheus.WrapRegistererWith(prometheus.Labels{"kind": k.String()}, reg)
	}
	f := metric.NewSet(reg, "datacache")
	f.NewGaugeFunc("minions", "Minions whose cached data are known on this node.",
		func() float64 { return float64(minions()) })
	return &metrics{
		news:     f.NewCounter("changes_total", "Times the local master had new data of a minion."),
		received: f.NewCounterVec("received_records_total", "Records received from other nodes, by outcome.", "outcome"),
		sent:     f.NewCounter("sent_records_total", "Records other nodes have taken."),
		bytes:    f.NewCounter("sent_bytes_total", "Bytes other nodes have taken."),
		purged:   f.NewCounter("purged_minions_total", "Minions whose data were deleted with their key."),
		failures: f.NewCounterVec("failures_total", "What could not be done, by operation.", "op"),
		scan:     f.NewHistogram("scan_seconds", "Time to check the data of all minions.", 0.0005, 4, 8),
		waiting:  f.NewGauge("waiting_changes", "Changes of mines that wait for their turn or for a place."),
	}
}
