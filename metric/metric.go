// Package metric makes the metrics of a subsystem: they have a common prefix, and are registered as they are made.
package metric

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Set makes the metrics of one subsystem.
type Set struct {
	prefix  string
	factory promauto.Factory
}

// NewSet returns a Set of metrics whose names begin with saltcluster_ and subsystem. With a nil registerer they count,
// but are not exported.
func NewSet(reg prometheus.Registerer, subsystem string) Set {
	return Set{prefix: "saltcluster_" + subsystem + "_", factory: promauto.With(reg)}
}

// NewCounter makes a counter.
func (s Set) NewCounter(name, help string) prometheus.Counter {
	return s.factory.NewCounter(prometheus.CounterOpts{Name: s.prefix + name, Help: help})
}

// NewCounterVec makes counters that labels tell apart.
func (s Set) NewCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return s.factory.NewCounterVec(prometheus.CounterOpts{Name: s.prefix + name, Help: help}, labels)
}

// NewCounterFunc makes a counter that is asked for its value.
func (s Set) NewCounterFunc(name, help string, value func() float64) {
	s.factory.NewCounterFunc(prometheus.CounterOpts{Name: s.prefix + name, Help: help}, value)
}

// NewGauge makes a gauge.
func (s Set) NewGauge(name, help string) prometheus.Gauge {
	return s.factory.NewGauge(prometheus.GaugeOpts{Name: s.prefix + name, Help: help})
}

// NewGaugeVec makes gauges that labels tell apart.
func (s Set) NewGaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return s.factory.NewGaugeVec(prometheus.GaugeOpts{Name: s.prefix + name, Help: help}, labels)
}

// NewGaugeFunc makes a gauge that is asked for its value.
func (s Set) NewGaugeFunc(name, help string, value func() float64) {
	s.factory.NewGaugeFunc(prometheus.GaugeOpts{Name: s.prefix + name, Help: help}, value)
}

// NewHistogram makes a histogram of so many buckets, the first up to start and each factor times as wide as the one
// before.
func (s Set) NewHistogram(name, help string, start, factor float64, count int) prometheus.Histogram {
	return s.factory.NewHistogram(prometheus.HistogramOpts{Name: s.prefix + name, Help: help,
		Buckets: prometheus.ExponentialBuckets(start, factor, count)})
}

// NewHistogramVec makes histograms that labels tell apart, with buckets as those of NewHistogram.
func (s Set) NewHistogramVec(name, help string, start, factor float64, count int,
	labels ...string) *prometheus.HistogramVec {
	return s.factory.NewHistogramVec(prometheus.HistogramOpts{Name: s.prefix + name, Help: help,
		Buckets: prometheus.ExponentialBuckets(start, factor, count)}, labels)
}
