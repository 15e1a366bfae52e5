package rsabackend

import (
	"crypto/fips140"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/metric"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltcrypt/libcrypto"
	"saltclusterd/sidecar/signin"
)

var (
	errConfigured = errors.New("option rsa_backend")
	errFIPS       = errors.New("the FIPS 140-3 module of Go is on (GODEBUG=fips140)")
)

// findUnavailable returns why the private operations cannot be done by the host's libcrypto, nil when they can.
func findUnavailable(option string) error {
	switch {
	case option == config.RSAGo:
		return errConfigured
	case fips140.Enabled():
		return errFIPS
	}
	return libcrypto.Load()
}

// Check fails where the option rsa_backend asks for a library that cannot be used.
func Check(option string) error {
	if option != config.RSALibcrypto {
		return nil
	}
	if err := findUnavailable(option); err != nil {
		return fmt.Errorf("load libcrypto.so.3 (option rsa_backend): %w; install libssl3 or openssl-libs, or set rsa_backend: auto", err)
	}
	return nil
}

// Accelerate gives a key to the host's libcrypto. It returns the key itself, and the reason, where Go does the
// operations.
func Accelerate(option string, key *saltcrypt.MasterKey) (signin.SecondIdentity, error) {
	if err := findUnavailable(option); err != nil {
		return key, err
	}
	k, err := libcrypto.Accelerate(key)
	if err != nil {
		return key, err
	}
	return k, nil
}

// Select returns the cluster's private key for sign-ins and publications, and logs the choice.
func Select(
	option string, clusterKey *saltcrypt.MasterKey, log *slog.Logger, registerer prometheus.Registerer,
) (signin.Identity, error) {
	key, reason := Accelerate(option, clusterKey)
	switch k, ok := key.(*libcrypto.Key); {
	case ok:
		log.Info("RSA backend selected", "backend", config.RSALibcrypto, "version", k.Version(), "left_to_go", k.Left())
		metric.NewSet(registerer, "node").NewCounterFunc("rsa_faults_total",
			"Wrong signatures of libcrypto, which Go made again. More than 0 means faulty hardware.",
			func() float64 { return float64(k.Faults()) })
	case option == config.RSALibcrypto:
		return nil, fmt.Errorf("give the cluster's key to libcrypto (option rsa_backend): %w", reason)
	case errors.Is(reason, libcrypto.ErrUnavailable):
		log.Warn("RSA backend selected", "backend", config.RSAGo, "reason", reason)
	default:
		log.Info("RSA backend selected", "backend", config.RSAGo, "reason", reason)
	}
	return key, nil
}
