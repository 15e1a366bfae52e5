package daemon

import (
	"context"
	"os"
	"strings"
	"sync"

	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/minionview"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/statuspage"
)

// pageSource implements statuspage.Source.
type pageSource struct {
	*Daemon
	minionview.Verbs
	masterlink.WallVerbs
}

// RootsStatus implements statuspage.Source.
func (s pageSource) RootsStatus(ctx context.Context) (adminapi.RootsStatus, error) {
	return s.rootsVerbs().RootsStatus(ctx)
}

// pageMeasures are what the status page shows over time; metrics are the counters behind them, those of saltclusterctl top.
var pageMeasures = []struct {
	statuspage.Measure
	metric string
}{
	{statuspage.Measure{Name: "publications", Doc: "of all masters, to the minions of this node"}, "saltcluster_fanout_publications_total"},
	{statuspage.Measure{Name: "returns", Doc: "that this node took"}, "saltcluster_returns_total"},
	{statuspage.Measure{Name: "requests", Doc: "of minions, returns among them"}, "saltcluster_sidecar_requests_total"},
	{statuspage.Measure{Name: "sign-ins", Doc: "answered or not"}, "saltcluster_signin_total"},
	{statuspage.Measure{Name: "refused", Doc: "requests that broke a rule"}, "saltcluster_guard_refused_total"},
	{statuspage.Measure{Name: "minions", Level: true, Doc: "connected to this node"}, "saltcluster_edge_subscribers"},
}

// statusPage makes the page, and what it shows over time.
func (d *Daemon) statusPage() (*statuspage.Page, *statuspage.Series) {
	var measures []statuspage.Measure
	for _, m := range pageMeasures {
		measures = append(measures, m.Measure)
	}
	series := statuspage.NewSeries(measures, d.pageValues)
	hosts := []string{string(d.id)}
	if name, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(name, ".")
		hosts = append(hosts, name, short)
	}
	return statuspage.New(statuspage.Config{Source: pageSource{d, d.minionVerbs(), d.wallVerbs()}, Series: series, Hosts: hosts, Logger: d.log}), series
}

// keepSeries counts for the page until it is closed.
func keepSeries(series *statuspage.Series) closer {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { series.Run(ctx) })
	return closerFunc(func() {
		cancel()
		wg.Wait()
	})
}

// closerFunc makes a function what is closed.
type closerFunc func()

func (f closerFunc) Close() error {
	f()
	return nil
}

// pageValues adds up the samples of each metric, whatever their labels.
func (d *Daemon) pageValues() []float64 {
	families, err := d.reg.Gather()
	if err != nil {
		d.log.Debug("metrics not read for the status page", "err", err)
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
