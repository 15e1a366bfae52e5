package edge

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/edge/netconn"
)

// metrics are the counters both edges keep; those of one edge are told apart
// by the label "edge". They count even when registered nowhere.
type metrics struct {
	*netconn.Metrics
	requests  prometheus.Counter
	replies   prometheus.Counter
	published prometheus.Counter
	delivered prometheus.Counter
	slowed    prometheus.Counter
	evicted   prometheus.Counter
	crowded   prometheus.Counter
	open      *prometheus.GaugeVec // connections by transport
}

func newMetrics(reg prometheus.Registerer, edge string) (*metrics, error) {
	label := prometheus.Labels{"edge": edge}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "saltcluster", Subsystem: "edge", Name: name, Help: help, ConstLabels: label})
	}
	conns, err := netconn.NewMetrics(reg, label)
	if err != nil {
		return nil, err
	}
	m := &metrics{
		Metrics:   conns,
		requests:  counter("requests_total", "Requests handed to the handler."),
		replies:   counter("replies_total", "Replies given by the handler."),
		published: counter("publications_total", "Publications accepted for delivery."),
		delivered: counter("deliveries_total", "Publications written to subscribers."),
		slowed:    counter("refused_slowed_total", "Refused requests after which their connection was not read for a while."),
		evicted:   counter("evicted_total", "Connections cut so that other requests find memory."),
		crowded: counter("unauthenticated_refused_total",
			"Requests given up because too many waited before it was certain who had sent them."),
	}
	m.open = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "saltcluster", Subsystem: "edge",
		Name: "transport_connections", Help: "Open connections by what their peers speak.", ConstLabels: label},
		[]string{"transport"})
	if reg == nil {
		return m, nil
	}
	all := []prometheus.Collector{m.published, m.delivered, m.open}
	if edge == "req" {
		all = []prometheus.Collector{m.requests, m.replies, m.slowed, m.evicted, m.crowded, m.open}
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// speaking is the number of connections with a transport, inside of TLS or without.
func (m *metrics) speaking(t Transport, secured bool) prometheus.Gauge {
	name := t.String()
	if secured {
		name += "+tls"
	}
	return m.open.WithLabelValues(name)
}

// gauge registers a gauge that is computed when it is read.
func gauge(reg prometheus.Registerer, edge, name, help string, f func() float64) error {
	if reg == nil {
		return nil
	}
	return reg.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "saltcluster", Subsystem: "edge", Name: name, Help: help,
		ConstLabels: prometheus.Labels{"edge": edge}}, f))
}
