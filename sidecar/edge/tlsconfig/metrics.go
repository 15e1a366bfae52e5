package tlsconfig

import (
	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

var (
	metrics  = metric.NewSet(nil, "tls")
	certDesc = metrics.NewDesc(metric.Gauge, "certificate_expiry_seconds",
		"Time until the certificate that minions with TLS are shown expires; negative: it has. Absent without TLS.")
	lifeDesc = metrics.NewDesc(metric.Gauge, "certificate_lifetime_seconds", "Total validity period of that certificate.")
	caDesc   = metrics.NewDesc(metric.Gauge, "client_ca_expiry_seconds",
		"Time until the last CA of the minions' certificates expires. Negative: it has expired. Absent when no client certificates are requested.")
)

// Describe implements prometheus.Collector.
func (s *Source) Describe(ch chan<- *prometheus.Desc) {
	ch <- certDesc
	ch <- lifeDesc
	ch <- caDesc
}

// Collect implements prometheus.Collector.
func (s *Source) Collect(ch chan<- prometheus.Metric) {
	l := s.current.Load()
	if l == nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(certDesc, prometheus.GaugeValue, l.Leaf.NotAfter.Sub(s.now()).Seconds())
	life := l.Leaf.NotAfter.Sub(l.Leaf.NotBefore).Seconds()
	ch <- prometheus.MustNewConstMetric(lifeDesc, prometheus.GaugeValue, life)
	if ca := lastCA(l.CAs); ca != nil {
		ch <- prometheus.MustNewConstMetric(caDesc, prometheus.GaugeValue, ca.NotAfter.Sub(s.now()).Seconds())
	}
}
