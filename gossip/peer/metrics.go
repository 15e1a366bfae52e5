package peer

import "github.com/prometheus/client_golang/prometheus"

// metrics of the port. They also work without a Registerer.
type metrics struct {
	accepted   *prometheus.CounterVec
	refused    *prometheus.CounterVec
	dialFailed *prometheus.CounterVec
	joins      *prometheus.CounterVec
	revoked    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	m := &metrics{
		accepted: vec("saltcluster_peer_accepted_total", "Connections of members admitted, by protocol.", "proto"),
		refused: vec("saltcluster_peer_refused_total", "Incoming connections cut before anyone got them, by reason.",
			"reason"),
		dialFailed: vec("saltcluster_peer_dial_failures_total", "Connections to members that could not be made.", "proto"),
		joins:      vec("saltcluster_peer_joins_total", "Join attempts at this node, by result.", "result"),
		revoked: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_peer_revoked_connections_total",
			Help: "Connections closed because their certificate was revoked.",
		}),
	}
	if reg == nil {
		return m
	}
	for _, c := range []prometheus.Collector{m.accepted, m.refused, m.dialFailed, m.joins, m.revoked} {
		reg.Unregister(c) // that of an earlier Port in this process, if any
		_ = reg.Register(c)
	}
	return m
}
