package returns

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
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
	m := &metrics{
		returns: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_returns_total",
			Help: "Returns of minions by what was done with them without the salt-master, or why that was not possible.",
		}, []string{"outcome"}),
		given: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_returns_events_given_up_total",
			Help: "Returns whose events were not fired because the master's bus was down for too long.",
		}),
		aside: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_returns_unanswered",
			Help: "Returns that only the salt-master can take and that it does not answer: put aside, and given to it again a few times.",
		}),
	}
	reg.MustRegister(m.returns, m.given, m.aside)
	return m
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
