package netconn

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
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
	f := metric.NewSet(nil, "edge").WithLabels(label)
	ended := f.NewCounterVec("ended_connections_total", "Connections that ended or were refused, by reason.", "reason")
	m := &Metrics{
		accepted: f.NewCounter("accepted_connections_total", "Connections let in."),
		sent:     f.NewCounter("sent_bytes_total", "Bytes written to peers."),
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
