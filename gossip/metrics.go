package gossip

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of gossip. They also work without a Registerer.
type metrics struct {
	dropped *prometheus.CounterVec
	vetoed  prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, alive func() float64) *metrics {
	f := metric.NewSet(nil, "gossip")
	m := &metrics{
		dropped: f.NewCounterVec("dropped_packets_total", "Packets not read or not sent, by reason.", "reason"),
		vetoed:  f.NewCounter("vetoed_claims_total", "Claims that a node is alive which the roster does not back."),
	}
	members := f.NewGaugeFunc("alive_members", "Members alive as this node sees it, itself included.", alive)
	if reg == nil {
		return m
	}
	for _, c := range []prometheus.Collector{m.dropped, m.vetoed, members} {
		reg.Unregister(c) // that of an earlier Gossip in this process, if any
		_ = reg.Register(c)
	}
	return m
}
