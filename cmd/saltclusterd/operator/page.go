package operator

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/statuspage"
)

// pageMeasures are what the status page shows over time; metric is the counter behind a measure, those of
// saltclusterctl top.
var pageMeasures = []struct {
	metric string
	statuspage.Measure
}{
	{
		"saltcluster_fanout_publications_total",
		statuspage.Measure{Name: "publications", Doc: "of all masters to minions of this node"},
	},
	{"saltcluster_minion_returns_total", statuspage.Measure{Name: "returns", Doc: "taken by this node"}},
	{"saltcluster_minion_requests_total", statuspage.Measure{Name: "requests", Doc: "of minions, returns included"}},
	{"saltcluster_signin_requests_total", statuspage.Measure{Name: "sign-ins", Doc: "of minions"}},
	{"saltcluster_minion_refused_requests_total", statuspage.Measure{Name: "refused", Doc: "requests that violated a rule"}},
	{"saltcluster_edge_subscribers", statuspage.Measure{Name: "minions", Level: true, Doc: "connected to this node"}},
}

// PageConfig is what the status page of a node works with.
type PageConfig struct {
	Self     node.ID
	Source   statuspage.Source
	Gatherer prometheus.Gatherer
	Logger   *slog.Logger
}

// NewPage returns the status page, and what it shows over time, which KeepSeries keeps.
func NewPage(cfg PageConfig) (*statuspage.Page, *statuspage.Series) {
	var measures []statuspage.Measure
	for _, m := range pageMeasures {
		measures = append(measures, m.Measure)
	}
	series := statuspage.NewSeries(measures, cfg.values)
	hosts := []string{string(cfg.Self)}
	if name, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(name, ".")
		hosts = append(hosts, name, short)
	}
	return statuspage.New(statuspage.Config{Source: cfg.Source, Series: series, Hosts: hosts, Logger: cfg.Logger}), series
}

// PageMetrics lists the metrics that the status page shows.
func PageMetrics() (names []string) {
	for _, m := range pageMeasures {
		names = append(names, m.metric)
	}
	return names
}

// values adds up the samples of each metric, whatever their labels.
func (cfg PageConfig) values() []float64 {
	families, err := cfg.Gatherer.Gather()
	if err != nil {
		cfg.Logger.Debug("metrics not read for the status page", "err", err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sums[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	values := make([]float64, len(pageMeasures))
	for i, m := range pageMeasures {
		values[i] = sums[m.metric]
	}
	return values
}

// SeriesKeeper adds points to a series until it is closed.
type SeriesKeeper struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// KeepSeries starts a SeriesKeeper.
func KeepSeries(series *statuspage.Series) *SeriesKeeper {
	ctx, cancel := context.WithCancel(context.Background())
	k := &SeriesKeeper{cancel: cancel}
	k.wg.Go(func() { series.Run(ctx) })
	return k
}

// Close waits for the goroutine.
func (k *SeriesKeeper) Close() error {
	k.cancel()
	k.wg.Wait()
	return nil
}
