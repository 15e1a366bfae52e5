package edge

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
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
	f := metric.NewSet(nil, "edge").WithLabels(label)
	conns, err := netconn.NewMetrics(reg, label)
	if err != nil {
		return nil, err
	}
	m := &metrics{
		Metrics:   conns,
		requests:  f.NewCounter("requests_total", "Requests handed to the handler."),
		replies:   f.NewCounter("replies_total", "Replies given by the handler."),
		published: f.NewCounter("publications_total", "Publications accepted for delivery."),
		delivered: f.NewCounter("deliveries_total", "Publications written to subscribers."),
		slowed:    f.NewCounter("slowed_requests_total", "Refused requests after which their connection was not read for a while."),
		evicted:   f.NewCounter("evicted_connections_total", "Connections cut so that other requests find memory."),
		crowded: f.NewCounter("unauthenticated_dropped_requests_total",
			"Requests dropped because too many were waiting to be authenticated."),
	}
	m.open = f.NewGaugeVec("transport_connections", "Open connections by transport.", "transport")
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
func gauge(reg prometheus.Registerer, edge, name, help string, value func() float64) error {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(nil, "edge").WithLabels(prometheus.Labels{"edge": edge})
	return reg.Register(f.NewGaugeFunc(name, help, value))
}
