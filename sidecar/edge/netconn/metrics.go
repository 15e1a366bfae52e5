package netconn

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the counters of connections. They count even when registered nowhere.
type Metrics struct {
	accepted prometheus.Counter
	sent     prometheus.Counter
	endings  [reasons]prometheus.Counter
	lagging  atomic.Uint64 // connections that ended because they did not keep up
}

// NewMetrics registers the counters of one edge with its label.
func NewMetrics(reg prometheus.Registerer, label prometheus.Labels) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "saltcluster", Subsystem: "edge", Name: name, Help: help, ConstLabels: label})
	}
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "saltcluster", Subsystem: "edge", Name: "connections_ended_total",
		Help: "Connections that ended or were not let in, by reason.", ConstLabels: label}, []string{"reason"})
	m := &Metrics{
		accepted: counter("connections_accepted_total", "Connections let in."),
		sent:     counter("sent_bytes_total", "Bytes written to peers."),
	}
	for r := Reason(1); r < reasons; r++ {
		m.endings[r] = ended.WithLabelValues(r.String())
	}
	if reg == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.accepted, ended, m.sent} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Ended counts the end of a connection.
func (m *Metrics) Ended(r Reason) {
	if r > ReasonNone && r < reasons {
		m.endings[r].Inc()
	}
	if r == ReasonSlow || r == ReasonStalled || r == ReasonSilent {
		m.lagging.Add(1)
	}
}

// Endings is the counter of a reason.
func (m *Metrics) Endings(r Reason) prometheus.Counter { return m.endings[r] }

// Lagging returns how many connections ended because they did not keep up.
func (m *Metrics) Lagging() uint64 { return m.lagging.Load() }

// Sent counts bytes written to peers.
func (m *Metrics) Sent(n int) { m.sent.Add(float64(n)) }
