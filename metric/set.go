// Package metric makes the metrics of a subsystem: their names follow one scheme, and they are registered as they are
// made. It also exports metrics under their former names until version 1.0.
package metric

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Set makes the metrics of one subsystem. A name that breaks the scheme (CheckName) panics, as a name that Prometheus
// does not accept does.
type Set struct {
	subsystem string
	labels    prometheus.Labels
	factory   promauto.Factory
}

// NewSet returns a Set of metrics whose names begin with saltcluster_ and subsystem. With a nil registerer they count,
// but are not exported.
func NewSet(reg prometheus.Registerer, subsystem string) Set {
	return Set{subsystem: subsystem, factory: promauto.With(reg)}
}

// WithLabels returns a Set whose metrics have these labels with these values as well.
func (s Set) WithLabels(labels prometheus.Labels) Set {
	all := maps.Clone(labels)
	maps.Copy(all, s.labels)
	s.labels = all
	return s
}

// Name returns the full name of a metric. It panics when the name breaks the scheme.
func (s Set) Name(kind Kind, name string) string {
	full := Prefix + s.subsystem + "_" + name
	if err := CheckName(full, kind); err != nil {
		panic(err)
	}
	return full
}

func (s Set) opts(kind Kind, name, help string) prometheus.Opts {
	return prometheus.Opts{Name: s.Name(kind, name), Help: help, ConstLabels: s.labels}
}

// NewDesc describes a metric that a collector makes when it is asked for.
func (s Set) NewDesc(kind Kind, name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(s.Name(kind, name), help, labels, s.labels)
}

// NewCounter makes a counter.
func (s Set) NewCounter(name, help string) prometheus.Counter {
	return s.factory.NewCounter(prometheus.CounterOpts(s.opts(Counter, name, help)))
}

// NewCounterVec makes counters that labels tell apart.
func (s Set) NewCounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return s.factory.NewCounterVec(prometheus.CounterOpts(s.opts(Counter, name, help)), labels)
}

// NewCounterFunc makes a counter that is asked for its value.
func (s Set) NewCounterFunc(name, help string, value func() float64) prometheus.CounterFunc {
	return s.factory.NewCounterFunc(prometheus.CounterOpts(s.opts(Counter, name, help)), value)
}

// NewGauge makes a gauge.
func (s Set) NewGauge(name, help string) prometheus.Gauge {
	return s.factory.NewGauge(prometheus.GaugeOpts(s.opts(Gauge, name, help)))
}

// NewGaugeVec makes gauges that labels tell apart.
func (s Set) NewGaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return s.factory.NewGaugeVec(prometheus.GaugeOpts(s.opts(Gauge, name, help)), labels)
}

// NewGaugeFunc makes a gauge that is asked for its value.
func (s Set) NewGaugeFunc(name, help string, value func() float64) prometheus.GaugeFunc {
	return s.factory.NewGaugeFunc(prometheus.GaugeOpts(s.opts(Gauge, name, help)), value)
}

// NewHistogram makes a histogram of so many buckets, the first up to start and each factor times as wide as the one
// before.
func (s Set) NewHistogram(name, help string, start, factor float64, count int) prometheus.Histogram {
	return s.factory.NewHistogram(s.histogramOpts(name, help, start, factor, count))
}

// NewHistogramVec makes histograms that labels tell apart, with buckets as those of NewHistogram.
func (s Set) NewHistogramVec(name, help string, start, factor float64, count int,
	labels ...string) *prometheus.HistogramVec {
	return s.factory.NewHistogramVec(s.histogramOpts(name, help, start, factor, count), labels)
}

func (s Set) histogramOpts(name, help string, start, factor float64, count int) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Name: s.Name(Histogram, name), Help: help, ConstLabels: s.labels,
		Buckets: prometheus.ExponentialBuckets(start, factor, count)}
}
