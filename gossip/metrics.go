package gossip

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of gossip. They work without a Registerer, too.
type metrics struct {
	dropped *prometheus.CounterVec
	vetoed  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, alive func() float64) *metrics {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "saltcluster_gossip_alive_members", Help: "Members alive as this node sees it, itself included.",
	}, alive)
	return &metrics{
		dropped: f.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_gossip_dropped_packets_total", Help: "Packets dropped before they were looked at, by reason.",
		}, []string{"reason"}),
		vetoed: f.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_gossip_vetoed_claims_total", Help: "Claims that a node is alive which the roster does not back.",
		}),
	}
}
