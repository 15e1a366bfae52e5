package health

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

var (
	metrics   = metric.NewSet(nil, "health")
	checkDesc = metrics.NewDesc(metric.Gauge, "check_level", "Newest result of a health check: 0 ok, 1 warn, 2 fail.", "check")
	readyDesc = metrics.NewDesc(metric.Gauge, "ready", "1 when this node is ready.")
)

// collector reads the results when asked, so that a hanging check shows.
type collector struct{ c *Checker }

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- checkDesc
	ch <- readyDesc
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range m.c.Report(ScopeLive | ScopeServe).Findings {
		ch <- prometheus.MustNewConstMetric(checkDesc, prometheus.GaugeValue, float64(f.Level), f.Check)
	}
	ready := 0.0
	if m.c.Report(ScopeReady).OK {
		ready = 1
	}
	ch <- prometheus.MustNewConstMetric(readyDesc, prometheus.GaugeValue, ready)
}

// serverMetrics counts what the listeners turn away. Methods take a nil receiver.
type serverMetrics struct{ refused *prometheus.CounterVec }

func newServerMetrics(reg prometheus.Registerer) *serverMetrics {
	if reg == nil {
		return nil
	}
	return &serverMetrics{refused: metric.NewSet(reg, "health").NewCounterVec("refused_connections_total",
		"Connections to the health ports beyond a limit.", "limit")}
}

func (m *serverMetrics) countRefused(limit string) {
	if m != nil {
		m.refused.WithLabelValues(limit).Inc()
	}
}
