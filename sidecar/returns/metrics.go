package returns

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of a service; the methods of a nil one do nothing.
type metrics struct {
	returns *prometheus.CounterVec
	given   prometheus.Counter
	aside   prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(reg, "returns")
	return &metrics{
		returns: metric.NewSet(reg, "minion").NewCounterVec("returns_total", "Returns of minions by how they were handled without the salt-master, or why that was not possible.", "outcome"),
		given:   f.NewCounter("dropped_events_total", "Returns whose events were not fired because the master's bus was down for too long."),
		aside:   f.NewGauge("unanswered_records", "Returns that only the salt-master can take and that it does not answer: put aside, and given to it again a few times."),
	}
}

func (m *metrics) count(outcome string) { m.add(outcome, 1) }

func (m *metrics) add(outcome string, n int) {
	if m != nil {
		m.returns.WithLabelValues(outcome).Add(float64(n))
	}
}

func (m *metrics) countFailed(err error) {
	switch {
	case errors.Is(err, ErrPython):
		m.count("needs_python")
	case errors.Is(err, ErrMalformed):
		m.count("malformed")
	default:
		m.count("not_journaled")
	}
}

func (m *metrics) putAside(n int) {
	if m != nil {
		m.aside.Set(float64(n))
	}
}

func (m *metrics) countSkipped(n int) {
	if m != nil {
		m.given.Add(float64(n))
	}
}
