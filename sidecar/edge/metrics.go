package edge

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the counters both edges keep; those of one edge are told apart
// by the label "edge". They count even when registered nowhere.
type metrics struct {
	accepted  prometheus.Counter
	endings   [reasons]prometheus.Counter
	requests  prometheus.Counter
	replies   prometheus.Counter
	published prometheus.Counter
	delivered prometheus.Counter
	sent      prometheus.Counter
	slowed    prometheus.Counter
	evicted   prometheus.Counter
	crowded   prometheus.Counter
	cuts      atomic.Uint64 // connections that ended because they did not keep up
}

func newMetrics(reg prometheus.Registerer, edge string) (*metrics, error) {
	label := prometheus.Labels{"edge": edge}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "saltcluster", Subsystem: "edge", Name: name, Help: help, ConstLabels: label})
	}
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "saltcluster", Subsystem: "edge", Name: "connections_ended_total",
		Help: "Connections that ended or were not let in, by reason.", ConstLabels: label}, []string{"reason"})
	m := &metrics{
		accepted:  counter("connections_accepted_total", "Connections let in."),
		requests:  counter("requests_total", "Requests handed to the handler."),
		replies:   counter("replies_total", "Replies given by the handler."),
		published: counter("publications_total", "Publications accepted for delivery."),
		delivered: counter("deliveries_total", "Publications written to subscribers."),
		sent:      counter("sent_bytes_total", "Bytes written to peers."),
		slowed:    counter("refused_slowed_total", "Refused requests after which their connection was not read for a while."),
		evicted:   counter("evicted_total", "Connections cut so that other requests find memory."),
		crowded: counter("unauthenticated_refused_total",
			"Requests given up because too many waited before it was certain who had sent them."),
	}
	for r := Reason(1); r < reasons; r++ {
		m.endings[r] = ended.WithLabelValues(r.String())
	}
	if reg == nil {
		return m, nil
	}
	all := []prometheus.Collector{m.accepted, ended, m.sent}
	if edge == "req" {
		all = append(all, m.requests, m.replies, m.slowed, m.evicted, m.crowded)
	} else {
		all = append(all, m.published, m.delivered)
	}
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) ended(r Reason) {
	if r > reasonNone && r < reasons {
		m.endings[r].Inc()
	}
	if r == ReasonSlow || r == ReasonStalled || r == ReasonSilent {
		m.cuts.Add(1)
	}
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
