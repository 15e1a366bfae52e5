package peer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of the port. They work without a Registerer, too.
type metrics struct {
	accepted   *prometheus.CounterVec
	refused    *prometheus.CounterVec
	dialFailed *prometheus.CounterVec
	joins      *prometheus.CounterVec
	revoked    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	return &metrics{
		accepted: f.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_peer_accepted_total", Help: "Connections of members admitted, by protocol.",
		}, []string{"proto"}),
		refused: f.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_peer_refused_total", Help: "Incoming connections cut before anyone got them, by reason.",
		}, []string{"reason"}),
		dialFailed: f.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_peer_dial_failures_total", Help: "Connections to members that could not be made, by protocol.",
		}, []string{"proto"}),
		joins: f.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_peer_joins_total", Help: "Join attempts at this node, by result.",
		}, []string{"result"}),
		revoked: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_peer_revoked_connections_total", Help: "Connections closed because their certificate was revoked.",
		}),
	}
}
