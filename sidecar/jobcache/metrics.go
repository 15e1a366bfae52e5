package jobcache

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a cache; the methods of a nil one do nothing.
type metrics struct{ returns, duplicates, differing, failures prometheus.Counter }

func newMetrics(reg prometheus.Registerer) *metrics {
	if reg == nil {
		return nil
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "saltcluster_jobcache_" + name, Help: help})
	}
	m := &metrics{
		returns:    counter("returns_total", "Returns written to the job cache."),
		duplicates: counter("duplicates_total", "Returns that were in the job cache already."),
		differing: counter("differing_total",
			"Returns of a minion for a job that were others than its first one, which stays."),
		failures: counter("failures_total", "Attempts to write that failed."),
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
