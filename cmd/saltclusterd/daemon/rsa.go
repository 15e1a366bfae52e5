package daemon

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/saltcrypt/libcrypto"
	"saltclusterd/sidecar/signin"
)

// operations are the cluster's private key as sign-ins and publications use it: our own where the processor makes it as fast as OpenSSL's,
// OpenSSL's where this program was built for it and the host has one that is fit, else Go's.
func (m *member) operations() signin.Identity {
	if how := m.key.Accelerated(); how != "" {
		m.log.Info("RSA is done by saltclusterd", "instructions", how)
		m.d.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_rsa_faults_total",
			Help: "Private operations with a wrong result, which Go's RSA did again: more than none means faulty hardware.",
		}, func() float64 { return float64(m.key.Faults()) }))
		return m.key
	}
	k, err := libcrypto.Accelerate(m.key)
	switch {
	case errors.Is(err, libcrypto.ErrNotBuilt):
		return m.key
	case err != nil:
		m.log.Warn("RSA is done by Go", "err", err)
		return m.key
	}
	m.log.Info("RSA is done by OpenSSL", "version", k.Version(), "left_to_go", k.Left())
	return k
}
