package daemon

import (
	"crypto/fips140"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltcrypt/libcrypto"
	"saltclusterd/sidecar/signin"
)

var (
	errRSAConfigured = errors.New("option rsa_backend")
	errRSAFIPS       = errors.New("the FIPS 140-3 module of Go is on (GODEBUG=fips140)")
)

// rsaUnavailable is why the private operations cannot be done by the host's libcrypto, nil when they can.
func (d *Daemon) rsaUnavailable() error {
	switch {
	case d.cfg.SignIn.RSABackend == config.RSAGo:
		return errRSAConfigured
	case fips140.Enabled():
		return errRSAFIPS
	}
	return libcrypto.Load()
}

// checkRSA refuses to start where rsa_backend asks for a library that cannot be used.
func (d *Daemon) checkRSA() error {
	if d.cfg.SignIn.RSABackend != config.RSALibcrypto {
		return nil
	}
	if err := d.rsaUnavailable(); err != nil {
		return fmt.Errorf("load libcrypto.so.3 (option rsa_backend): %w; install libssl3 or openssl-libs, or set rsa_backend: auto", err)
	}
	return nil
}

// accelerate gives a key to the host's libcrypto. It returns the key itself, and the reason, where Go does the
// operations.
func (d *Daemon) accelerate(key *saltcrypt.MasterKey) (signin.SecondIdentity, error) {
	if err := d.rsaUnavailable(); err != nil {
		return key, err
	}
	k, err := libcrypto.Accelerate(key)
	if err != nil {
		return key, err
	}
	return k, nil
}

// operations returns the cluster's private key for sign-ins and publications, and logs the backend once.
func (m *member) operations() (signin.Identity, error) {
	key, reason := m.d.accelerate(m.key)
	switch k, ok := key.(*libcrypto.Key); {
	case ok:
		m.log.Info("RSA backend selected", "backend", config.RSALibcrypto, "version", k.Version(), "left_to_go", k.Left())
		m.d.reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "saltcluster_sidecar_rsa_faults_total",
			Help: "Signatures of libcrypto that were wrong and made again by Go: more than none means faulty hardware.",
		}, func() float64 { return float64(k.Faults()) }))
	case m.d.cfg.SignIn.RSABackend == config.RSALibcrypto:
		return nil, fmt.Errorf("give the cluster's key to libcrypto (option rsa_backend): %w", reason)
	case errors.Is(reason, libcrypto.ErrUnavailable):
		m.log.Warn("RSA backend selected", "backend", config.RSAGo, "reason", reason)
	default:
		m.log.Info("RSA backend selected", "backend", config.RSAGo, "reason", reason)
	}
	return key, nil
}
