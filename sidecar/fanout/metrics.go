package fanout

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
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
	f := metric.NewSet(reg, "fanout")
	return &metrics{
		published: f.NewCounterVec("publications_total", "Publications handed to this node's subscribers, by source (local or peer).", "source"),
		refused:   f.NewCounterVec("refused_publications_total", "Publications not handed on, by reason.", "reason"),
		missed:    f.NewCounterVec("missed_records_total", "Records that fell out of the outbox before a peer took them, by peer.", "peer"),
		late: f.NewCounterVec("late_publications_total", "Publications of the last minute for new subscribers, counted per subscriber: given, or not given because "+
			"the target cannot exclude the minions that may have had it (target), or these were not known in time (unknown), or because the job was stopped since (stopped).", "outcome"),
		seal:    f.NewHistogram("seal_seconds", "Time to stamp, encrypt and sign one publication.", 0.0001, 2, 12),
		deliver: f.NewHistogram("deliver_seconds", "Time from a publication's arrival, from the local master or a peer, until all subscribers of this node have it in their queues.", 0.0001, 3, 12),
	}
}

// registerOutbox shows how full the outbox is.
func (m *metrics) registerOutbox(reg prometheus.Registerer, o *outbox, l *late.Memory) {
	f := metric.NewSet(reg, "fanout")
	f.NewCounterFunc("late_dropped_publications_total",
		"Publications of the last minute that could not be kept for later subscribers: too many, or too large.",
		func() float64 { return float64(l.Dropped()) })
	f.NewGaugeFunc("outbox_records", "Records kept for peers that have not received them.", func() float64 {
		records, _ := o.countHeld()
		return float64(records)
	})
	f.NewGaugeFunc("outbox_bytes", "Bytes of records kept for peers that have not taken them.", func() float64 {
		_, bytes := o.countHeld()
		return float64(bytes)
	})
}

func (m *metrics) countLost(peer string, n uint64) { m.missed.WithLabelValues(peer).Add(float64(n)) }
