package sidecar

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
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
	f := metric.NewSet(reg, "minion")
	return &metrics{
		requests: f.NewCounterVec("requests_total", "Requests of minions that passed the checks, by command and destination.", "command", "route"),
		lost:     f.NewCounterVec("lost_requests_total", "Requests of minions that got no answer, by command and destination.", "command", "route"),
		resealed: f.NewCounter("resealed_requests_total", "Requests encrypted again: the local master has another session key, or the minion has one from before the master was adopted."),
		handed:   f.NewCounterVec("relayed_refused_requests_total", "Requests refused here that another node has handed over, by node.", "node"),
		seconds:  f.NewHistogramVec("request_seconds", "Time from a request's arrival to its answer, by where it went.", 0.0005, 2.5, 13, "route"),
		held:     f.NewHistogram("file_hold_seconds", "Time for which requests for files and pillars waited while the roots changed.", 0.001, 3, 9),
	}
}

// registerQueues shows how full the proxy's own queues are.
func (p *Proxy) registerQueues(reg prometheus.Registerer) {
	f := metric.NewSet(reg, "minion")
	f.NewGaugeFunc("catching_up_requests", "Requests that wait until this node has caught up with the cluster.", func() float64 {
		return float64(p.catchUp.countWaiting())
	})
	f.NewGaugeFunc("awaiting_requests", "Requests that wait until a master of the cluster answers.",
		func() float64 { return float64(p.queue.countWaiting()) })
	f.NewGaugeFunc("held_requests", "Requests for files and pillars that wait while the roots change.", func() float64 {
		return float64(p.files.countWaiting())
	})
	f.NewGaugeFunc("write_copies", "Copies of writes under way to other nodes.", func() float64 {
		n, _ := p.copies.countHeld()
		return float64(n)
	})
	f.NewGaugeFunc("write_copy_bytes", "Bytes of copies of writes under way to other nodes.", func() float64 {
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
