package fileserve

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// metrics counts what is served. With a nil registerer the metrics are not registered.
type metrics struct {
	requests                           *prometheus.CounterVec
	served, read, hashed, hits, pinned prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, s *Server) *metrics {
	f := metric.NewSet(reg, "fileserve")
	m := &metrics{
		requests: f.NewCounterVec("requests_total", "Requests for files that this node may answer itself, by command and by whether it did (here) or the salt-master had to (forward).", "command", "outcome"),
		served:   f.NewCounter("answered_bytes_total", "Bytes of answers about files, before they are sealed."),
		read:     f.NewCounter("read_bytes_total", "Bytes of chunks read from disk; fewer than answered when minions ask together."),
		hashed:   f.NewCounter("hashed_bytes_total", "Bytes of files hashed."),
		hits:     f.NewCounter("hits_total", "Chunks and hashes that were in memory."),
		pinned:   f.NewCounter("kept_versions_total", "Chunks of a file that was replaced during its transfer."),
	}
	f.NewGaugeFunc("kept_bytes", "Bytes of chunks, hashes and lists in memory.", func() float64 {
		_, a := s.chunks.size()
		_, b := s.hashes.size()
		_, c := s.envs.size()
		return float64(a + b + c)
	})
	f.NewGaugeFunc("open_files", "Files held open for transfers.", func() float64 {
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
