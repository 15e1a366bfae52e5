package eventbus

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

type busMetrics struct {
	up, waiting                         prometheus.Gauge
	fired, received, dropped, malformed prometheus.Counter
}

func newBusMetrics(reg prometheus.Registerer) *busMetrics {
	f := metric.NewSet(reg, "master")
	return &busMetrics{
		waiting:   f.NewGauge("bus_queue_events", "Events waiting for the local master's pull socket."),
		up:        f.NewGauge("bus_up", "Whether the local master's events are received."),
		fired:     f.NewCounter("bus_fired_events_total", "Events handed to the local master's bus."),
		received:  f.NewCounter("bus_received_events_total", "Events received from the local master's bus."),
		dropped:   f.NewCounter("bus_dropped_events_total", "Events not fired because the queue was full."),
		malformed: f.NewCounter("bus_malformed_events_total", "Messages from the local master's bus that are not events."),
	}
}
