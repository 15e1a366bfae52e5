package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/router"
)

// metrics counts the requests of minions. A nil registerer gives metrics that nobody reads.
type metrics struct {
	requests *prometheus.CounterVec
	lost     *prometheus.CounterVec
	resealed prometheus.Counter
	seconds  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_total",
			Help: "Requests of minions let through, by command and by where they went.",
		}, []string{"cmd", "route"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_lost_total",
			Help: "Requests of minions that got no answer, by where they had gone.",
		}, []string{"route"}),
		resealed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_resealed_total",
			Help: "Requests encrypted anew because the local master holds another session key.",
		}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "saltcluster_sidecar_request_seconds",
			Help:    "Time from a request's arrival to its answer, by where it went.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 13),
		}, []string{"route"}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.lost, m.resealed, m.seconds)
	}
	return m
}

func (m *metrics) request(cmd, route string) {
	m.requests.WithLabelValues(router.Label(cmd), route).Inc()
}
