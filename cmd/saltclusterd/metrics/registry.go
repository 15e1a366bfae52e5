package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"

	"saltclusterd/metric"
)

// Registry keeps the metrics of the host side apart from those of a membership, which come and go with it.
type Registry struct {
	Host *prometheus.Registry

	mu     sync.Mutex
	member *prometheus.Registry // nil while the host side opens
}

// NewRegistry returns a Registry without a membership, which has the metrics of the process.
func NewRegistry(version string) *Registry {
	r := &Registry{Host: prometheus.NewRegistry()}
	r.Host.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		newBuildInfo(version))
	return r
}

// Renew forgets the metrics of the membership before; what registers from now on belongs to the next one.
func (r *Registry) Renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member = prometheus.NewRegistry()
}

// Current returns the registry of the membership, or that of the host while there is none.
func (r *Registry) Current() *prometheus.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member != nil {
		return r.member
	}
	return r.Host
}

// Register implements prometheus.Registerer.
func (r *Registry) Register(c prometheus.Collector) error { return r.Current().Register(c) }

// MustRegister implements prometheus.Registerer.
func (r *Registry) MustRegister(cs ...prometheus.Collector) { r.Current().MustRegister(cs...) }

// Unregister implements prometheus.Registerer.
func (r *Registry) Unregister(c prometheus.Collector) bool { return r.Current().Unregister(c) }

// Gather implements prometheus.Gatherer.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	all := prometheus.Gatherers{r.Host}
	if m := r.Current(); m != r.Host {
		all = append(all, m)
	}
	return all.Gather()
}

// WithOldNames returns what Prometheus collects: all metrics, also under the names that they had before.
func (r *Registry) WithOldNames() prometheus.Gatherer { return metric.WithOldNames(r) }
