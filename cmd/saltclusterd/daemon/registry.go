package daemon

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// registry keeps the metrics of the host side apart from those of a membership, which come and go with it.
type registry struct {
	host *prometheus.Registry

	mu     sync.Mutex
	member *prometheus.Registry // nil while the host side opens
}

func newRegistry() *registry { return &registry{host: prometheus.NewRegistry()} }

// renew forgets the metrics of the membership before; what registers from now on belongs to the next one.
func (r *registry) renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.member = prometheus.NewRegistry()
}

func (r *registry) current() *prometheus.Registry {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.member != nil {
		return r.member
	}
	return r.host
}

// Register implements prometheus.Registerer.
func (r *registry) Register(c prometheus.Collector) error { return r.current().Register(c) }

// MustRegister implements prometheus.Registerer.
func (r *registry) MustRegister(cs ...prometheus.Collector) { r.current().MustRegister(cs...) }

// Unregister implements prometheus.Registerer.
func (r *registry) Unregister(c prometheus.Collector) bool { return r.current().Unregister(c) }

// Gather implements prometheus.Gatherer.
func (r *registry) Gather() ([]*dto.MetricFamily, error) {
	all := prometheus.Gatherers{r.host}
	if m := r.current(); m != r.host {
		all = append(all, m)
	}
	return all.Gather()
}
