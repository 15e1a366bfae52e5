package eventbus

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type busMetrics struct {
	up, waiting                         prometheus.Gauge
	fired, received, dropped, malformed prometheus.Counter
}

func newBusMetrics(reg prometheus.Registerer) *busMetrics {
	f := promauto.With(reg)
	counter := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Name: "saltcluster_localmaster_bus_" + name, Help: help})
	}
	return &busMetrics{
		waiting: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_localmaster_bus_queue_events", Help: "Events waiting for the local master's pull socket.",
		}),
		up: f.NewGauge(prometheus.GaugeOpts{
			Name: "saltcluster_localmaster_bus_up", Help: "Whether the local master's events are received.",
		}),
		fired:     counter("fired_events_total", "Events handed to the local master's bus."),
		received:  counter("received_events_total", "Events received from the local master's bus."),
		dropped:   counter("dropped_events_total", "Events not fired because the queue was full."),
		malformed: counter("malformed_events_total", "Messages from the local master's bus that are not events."),
	}
}
