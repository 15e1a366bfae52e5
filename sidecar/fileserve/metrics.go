package fileserve

import "github.com/prometheus/client_golang/prometheus"

// metrics counts what is served. With a nil registerer the metrics are not registered.
type metrics struct {
	requests                           *prometheus.CounterVec
	served, read, hashed, hits, pinned prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, s *Server) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "saltcluster_fileserve_" + name, Help: help})
	}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "saltcluster_fileserve_requests_total",
			Help: "Requests for files that this node may answer itself, by command and by whether it did (here) or the salt-master had to (forward).",
		}, []string{"cmd", "outcome"}),
		served: counter("answered_bytes_total", "Bytes of answers about files, before they are sealed."),
		read:   counter("read_bytes_total", "Bytes of chunks read from disk; fewer than answered when minions ask together."),
		hashed: counter("hashed_bytes_total", "Bytes of files hashed."),
		hits:   counter("hits_total", "Chunks and hashes that were in memory."),
		pinned: counter("kept_versions_total", "Chunks of a file that was replaced during its transfer."),
	}
	if reg == nil {
		return m
	}
	reg.MustRegister(m.requests, m.served, m.read, m.hashed, m.hits, m.pinned)
	gauge := func(name, help string, f func() float64) {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "saltcluster_fileserve_" + name, Help: help}, f))
	}
	gauge("kept_bytes", "Bytes of chunks, hashes and lists in memory.", func() float64 {
		_, a := s.chunks.size()
		_, b := s.hashes.size()
		_, c := s.envs.size()
		return float64(a + b + c)
	})
	gauge("open_files", "Files held open for transfers.", func() float64 {
		n, _ := s.transfers.pins.size()
		return float64(n)
	})
	return m
}

func (m *metrics) countRequest(cmd string, err error) {
	outcome := "here"
	if err != nil {
		outcome = "forward"
	}
	m.requests.WithLabelValues(cmd, outcome).Inc()
}
