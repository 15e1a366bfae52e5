package events

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of a service; the methods of a nil one do nothing.
type metrics struct{ loads *prometheus.CounterVec }

// newMetrics also shows how many wait.
func newMetrics(reg prometheus.Registerer, waiting func() int) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(reg, "minion")
	f.NewGaugeFunc("waiting_events", "Requests with events of minions that wait until the master's bus is given them.",
		func() float64 { return float64(waiting()) })
	return &metrics{loads: f.NewCounterVec("events_total",
		"Events of minions by how they were handled without the salt-master's Python, or why that was not possible.",
		"outcome")}
}

func (m *metrics) countLoad(err error) {
	outcome := "unsure"
	switch {
	case err == nil:
		outcome = "fired"
	case errors.Is(err, ErrPython):
		outcome = "needs_python"
	case errors.Is(err, ErrMalformed):
		outcome = "malformed"
	}
	m.addOutcome(outcome)
}

func (m *metrics) countDuplicate() { m.addOutcome("duplicate") }

func (m *metrics) addOutcome(outcome string) {
	if m != nil {
		m.loads.WithLabelValues(outcome).Inc()
	}
}
