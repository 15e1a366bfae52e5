package daemon

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/returns"
)

// newBuildInfo returns the metric that tells which programs a cluster runs.
func newBuildInfo(version string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "saltcluster_build_info", Help: "Always 1; the labels are the versions of saltclusterd and of Go.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	return info
}

// numbers tells Prometheus, when it asks, what no part of a service counts on its own.
type numbers struct{ s *service }

var (
	descEpoch = prometheus.NewDesc("saltcluster_epoch_number",
		"The AES key of publications that is in force, counted since the cluster's birth.", nil, nil)
	descAge   = prometheus.NewDesc("saltcluster_epoch_age_seconds", "How long that key has been in force.", nil, nil)
	descMoved = prometheus.NewDesc("saltcluster_epoch_previous_subscribers",
		"Subscribers of this node that still have the key before.", nil, nil)
	descDrain = prometheus.NewDesc("saltcluster_draining", "Whether this node is drained, or being drained (1).", nil, nil)
	descWait  = prometheus.NewDesc("saltcluster_returns_waiting_records",
		"Returns in a journal that a consumer is not done with (files: the job cache, bus: the salt-master's events, else a node).", []string{"journal", "consumer"}, nil)
	descOldest = prometheus.NewDesc("saltcluster_returns_oldest_seconds",
		"For how long the first of them has been waiting.", []string{"journal", "consumer"}, nil)
	descRuns = prometheus.NewDesc("saltcluster_jobs_running",
		"Jobs published here that still lack returns and have not timed out.", nil, nil)
	descWanted = prometheus.NewDesc("saltcluster_jobs_expected_returns_total",
		"Returns that were expected of the jobs published here that have ended.", nil, nil)
	descCame  = prometheus.NewDesc("saltcluster_jobs_returned_total", "Of these, those that came.", nil, nil)
	descLacks = prometheus.NewDesc("saltcluster_jobs_missing_returns_total",
		"Of these, those that had not come when the job ended.", nil, nil)
)

// Describe implements prometheus.Collector.
func (n numbers) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descEpoch, descAge, descMoved, descDrain, descWait, descOldest, descRuns,
		descWanted, descCame, descLacks} {
		out <- d
	}
}

// Collect implements prometheus.Collector. It waits for no disk.
func (n numbers) Collect(out chan<- prometheus.Metric) {
	s, now := n.s, time.Now()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v))
	}
	epoch := s.m.Consensus.View().Epochs().Current
	gauge(descEpoch, float64(epoch.N))
	if epoch.At > 0 {
		gauge(descAge, max(0, now.Sub(time.UnixMilli(epoch.At)).Seconds()))
	}
	gauge(descMoved, float64(s.pub.Stats().OnPrevious))
	draining := 0.0
	if s.drain.Draining() {
		draining = 1
	}
	gauge(descDrain, draining)
	waiting(s.native.Returns.Stats(), now, gauge)
	j := s.published.Counts()
	gauge(descRuns, float64(j.Running))
	count(descWanted, j.Expected)
	count(descCame, j.Returned)
	count(descLacks, j.Expected-j.Returned)
}

func waiting(journals []returns.JournalStats, now time.Time, gauge func(*prometheus.Desc, float64, ...string)) {
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
