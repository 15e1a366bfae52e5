package jobcache

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics of a cache; the methods of a nil one do nothing.
type metrics struct{ returns, duplicates, differing, failures prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	f := metric.NewSet(nil, "jobcache")
	m := &metrics{
		returns:    f.NewCounter("returns_total", "Returns written to the job cache."),
		duplicates: f.NewCounter("duplicate_returns_total", "Returns that were in the job cache already."),
		differing: f.NewCounter("differing_returns_total",
			"Returns of a minion for a job that were others than its first one, which stays."),
		failures: f.NewCounter("failures_total", "Attempts to write that failed."),
	}
	for _, c := range []*prometheus.Counter{&m.returns, &m.duplicates, &m.differing, &m.failures} {
		var there prometheus.AlreadyRegisteredError // a cache takes another's place when the master's options change
		if err := reg.Register(*c); errors.As(err, &there) {
			*c = there.ExistingCollector.(prometheus.Counter)
		} else if err != nil {
			panic(err)
		}
	}
	return m
}

func (m *metrics) stored() {
	if m != nil {
		m.returns.Inc()
	}
}

func (m *metrics) repeated() {
	if m != nil {
		m.duplicates.Inc()
	}
}

func (m *metrics) differed() {
	if m != nil {
		m.differing.Inc()
	}
}

func (m *metrics) failed() {
	if m != nil {
		m.failures.Inc()
	}
}
