package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/router"
)

// metrics counts the requests of minions. With a nil registerer the metrics are not exported.
type metrics struct {
	requests *prometheus.CounterVec
	lost     *prometheus.CounterVec
	resealed prometheus.Counter
	handed   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	held     prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_total",
			Help: "Requests of minions let through, by command and by where they went.",
		}, []string{"cmd", "route"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_lost_total",
			Help: "Requests of minions that got no answer, by command and by where they had gone.",
		}, []string{"cmd", "route"}),
		resealed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_requests_resealed_total",
			Help: "Requests encrypted anew: the local master holds another session key, or the minion one from before the master was adopted.",
		}),
		handed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_handed_refused_total",
			Help: "Requests refused here that another node has handed over, by node.",
		}, []string{"node"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "saltcluster_sidecar_request_seconds",
			Help:    "Time from a request's arrival to its answer, by where it went.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2.5, 13),
		}, []string{"route"}),
		held: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "saltcluster_sidecar_files_held_seconds",
			Help:    "Time for which requests for files and pillars waited while the roots changed.",
			Buckets: prometheus.ExponentialBuckets(0.001, 3, 9),
		}),
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.lost, m.resealed, m.handed, m.seconds, m.held)
	}
	return m
}

// registerQueues shows how full the proxy's own queues are.
func (p *Proxy) registerQueues(reg prometheus.Registerer) {
	if reg == nil {
		return
	}
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "saltcluster_sidecar_" + name, Help: help}, f))
	}
	gauge("catching_up_requests", "Requests that wait until this node knows what the cluster knows.", func() float64 {
		return float64(p.catchUp.countWaiting())
	})
	gauge("awaiting_requests", "Requests that wait until a master of the cluster answers.",
		func() float64 { return float64(p.queue.countWaiting()) })
	gauge("held_requests", "Requests for files and pillars that wait while the roots change.", func() float64 {
		return float64(p.files.countWaiting())
	})
	gauge("copies", "Copies of writes under way to other nodes.", func() float64 {
		n, _ := p.copies.countHeld()
		return float64(n)
	})
	gauge("copied_bytes", "And their bytes.", func() float64 {
		_, n := p.copies.countHeld()
		return float64(n)
	})
}

func (m *metrics) countRequest(cmd, route string) {
	m.requests.WithLabelValues(router.Label(cmd), route).Inc()
}

// countUnanswered counts one of those that went there and got no answer.
func (m *metrics) countUnanswered(cmd, route string) {
	m.lost.WithLabelValues(router.Label(cmd), route).Inc()
}
