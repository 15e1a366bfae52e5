package gossip

import "github.com/prometheus/client_golang/prometheus"

// metrics of gossip. They also work without a Registerer.
type metrics struct {
	dropped *prometheus.CounterVec
	vetoed  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, alive func() float64) *metrics {
	m := &metrics{
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_gossip_dropped_packets_total", Help: "Packets not looked at or not sent, by reason.",
		}, []string{"reason"}),
		vetoed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_gossip_vetoed_claims_total", Help: "Claims that a node is alive which the roster does not back.",
		}),
	}
	members := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "saltcluster_gossip_alive_members", Help: "Members alive as this node sees it, itself included.",
	}, alive)
	if reg == nil {
		return m
	}
	for _, c := range []prometheus.Collector{m.dropped, m.vetoed, members} {
		reg.Unregister(c) // that of an earlier Gossip in this process, if any
		_ = reg.Register(c)
	}
	return m
}
