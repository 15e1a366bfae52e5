package metrics

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/consensus/state"
	"saltclusterd/metric"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/returns"
)

// Service are the parts of a service for minions that are asked.
type Service struct {
	View     func() state.View
	Publish  interface{ Stats() edge.PubStats }
	Returns  interface{ Stats() []returns.JournalStats }
	Jobs     func() JobCounts
	Draining func() bool
}

// JobCounts are the running jobs, and the returns of the ended ones.
type JobCounts struct {
	Running            int
	Expected, Returned uint64
}

// NewServiceCollector returns a collector of what no part of a service counts on its own.
func NewServiceCollector(s Service) prometheus.Collector { return collector{s} }

type collector struct{ Service }

var (
	epochs  = metric.NewSet(nil, "epoch")
	waiting = metric.NewSet(nil, "returns")
	jobs    = metric.NewSet(nil, "jobs")

	descEpoch = epochs.NewDesc(metric.Gauge, "number",
		"Number of the AES key in force for publications, counted from the creation of the cluster.")
	descAge    = epochs.NewDesc(metric.Gauge, "age_seconds", "Age of the AES key in force.")
	descMoved  = epochs.NewDesc(metric.Gauge, "previous_subscribers", "Subscribers of this node that still have the previous AES key.")
	descDrain  = metric.NewSet(nil, "node").NewDesc(metric.Gauge, "draining", "Whether this node is drained, or being drained (1).")
	descWait   = waiting.NewDesc(metric.Gauge, "waiting_records", "Returns in a journal that a consumer is not done with (files: the job cache, events: the master's bus, master: its Python, forward: another node).", "journal", "consumer")
	descOldest = waiting.NewDesc(metric.Gauge, "oldest_seconds", "Age of the first of these returns.", "journal", "consumer")
	descRuns   = metric.NewSet(nil, "master").NewDesc(metric.Gauge, "running_jobs",
		"Jobs published here that still lack returns and have not timed out.")
	descWanted = jobs.NewDesc(metric.Counter, "expected_returns_total",
		"Returns that were expected of the jobs published here that have ended.")
	descCame  = jobs.NewDesc(metric.Counter, "arrived_returns_total", "Expected returns that arrived.")
	descLacks = jobs.NewDesc(metric.Counter, "missing_returns_total", "Expected returns that had not arrived when the job ended.")
)

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descEpoch, descAge, descMoved, descDrain, descWait, descOldest, descRuns,
		descWanted, descCame, descLacks} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It waits for no disk.
func (c collector) Collect(out chan<- prometheus.Metric) {
	now := time.Now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	epoch := c.View().Epochs().Current
	gauge(descEpoch, float64(epoch.N))
	if epoch.At > 0 {
		gauge(descAge, max(0, now.Sub(time.UnixMilli(epoch.At)).Seconds()))
	}
	gauge(descMoved, float64(c.Publish.Stats().OnPrevious))
	draining := 0.0
	if c.Draining() {
		draining = 1
	}
	gauge(descDrain, draining)
	collectWaiting(c.Returns.Stats(), now, gauge)
	j := c.Jobs()
	gauge(descRuns, float64(j.Running))
	count(descWanted, j.Expected)
	count(descCame, j.Returned)
	count(descLacks, j.Expected-j.Returned)
}

func collectWaiting(journals []returns.JournalStats, now time.Time, gauge func(*prometheus.Desc, float64, ...string)) {
	for _, j := range journals {
		for _, c := range j.Consumers {
			gauge(descWait, float64(c.Pending), j.Name, c.Name)
			age := 0.0
			if at, ok := j.Oldest[c.Name]; ok && c.Pending > 0 {
				age = max(0, now.Sub(at).Seconds())
			}
			gauge(descOldest, age, j.Name, c.Name)
		}
	}
}

// newBuildInfo returns the metric that tells which programs a cluster runs.
func newBuildInfo(version string) prometheus.Collector {
	info := metric.NewSet(nil, "build").WithLabels(prometheus.Labels{"version": version, "goversion": runtime.Version()}).
		NewGauge("info", "Always 1; the labels are the versions of saltclusterd and of Go.")
	info.Set(1)
	return info
}
