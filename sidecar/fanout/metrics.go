package fanout

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/late"
)

// metrics counts what the fan-out does. With a nil registerer the metrics are not registered.
type metrics struct {
	published *prometheus.CounterVec // by source: local, peer
	refused   *prometheus.CounterVec // by reason
	missed    *prometheus.CounterVec // by peer
	late      *prometheus.CounterVec // by what became of it
	seal      prometheus.Histogram
	deliver   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		published: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_fanout_publications_total",
			Help: "Publications handed to this node's subscribers, by source (local or peer).",
		}, []string{"source"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_fanout_refused_total",
			Help: "Publications not handed on, by reason.",
		}, []string{"reason"}),
		missed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_fanout_missed_total",
			Help: "Records that fell out of the outbox before a peer took them, by peer.",
		}, []string{"peer"}),
		late: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_fanout_late_total",
			Help: "Publications of the last minute for subscribers that had just come, each subscriber counted: given; or not given, because " +
				"the target cannot leave those out that may have had it (target), or it was not known in time who has (unknown).",
		}, []string{"result"}),
		seal: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_fanout_seal_seconds",
			Help:    "Time to stamp, encrypt and sign one publication.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 12),
		}),
	}
	m.deliver = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "saltcluster_fanout_deliver_seconds",
		Help:    "Time from a publication's arrival, from the local master or a peer, until all subscribers of this node have it in their queues.",
		Buckets: prometheus.ExponentialBuckets(0.0001, 3, 12),
	})
	if reg != nil {
		reg.MustRegister(m.published, m.refused, m.missed, m.late, m.seal, m.deliver)
	}
	return m
}

// registerOutbox shows how full the outbox is.
func (m *metrics) registerOutbox(reg prometheus.Registerer, o *outbox, l *late.Memory) {
	if reg == nil {
		return
	}
	gauge := func(name, help string, f func(records, bytes int) int) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "saltcluster_fanout_" + name, Help: help},
			func() float64 { return float64(f(o.countHeld())) }))
	}
	reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "saltcluster_fanout_late_dropped_total",
		Help: "Publications of the last minute that could not be kept for subscribers to come: more, or larger, than there is room for.",
	}, func() float64 { return float64(l.Dropped()) }))
	gauge("outbox_records", "Records kept for peers that have not taken them.",
		func(records, _ int) int { return records })
	gauge("outbox_bytes", "And their bytes.", func(_, bytes int) int { return bytes })
}

func (m *metrics) countLost(peer string, n uint64) { m.missed.WithLabelValues(peer).Add(float64(n)) }
