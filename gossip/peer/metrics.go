package peer

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of the port. They also work without a Registerer.
type metrics struct {
	accepted   *prometheus.CounterVec
	refused    *prometheus.CounterVec
	dialFailed *prometheus.CounterVec
	joins      *prometheus.CounterVec
	revoked    prometheus.Counter
	tunnels    prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.NewSet(nil, "peer")
	m := &metrics{
		accepted:   f.NewCounterVec("accepted_connections_total", "Connections of members admitted, by protocol.", "proto"),
		refused:    f.NewCounterVec("refused_connections_total", "Incoming connections closed before a protocol handled them, by reason.", "reason"),
		dialFailed: f.NewCounterVec("dial_failures_total", "Connections to members that could not be made.", "proto"),
		joins:      f.NewCounterVec("joins_total", "Join attempts at this node, by outcome.", "outcome"),
		revoked:    f.NewCounter("revoked_connections_total", "Connections closed because their certificate was revoked."),
		tunnels: f.NewGauge("tunnelled_connections", "Connections between two other members that go through this node, "+
			"because they do not reach each other directly."),
	}
	if reg == nil {
		return m
	}
	for _, c := range []prometheus.Collector{m.accepted, m.refused, m.dialFailed, m.joins, m.revoked, m.tunnels} {
		reg.Unregister(c) // that of an earlier Port in this process, if any
		_ = reg.Register(c)
	}
	return m
}
