package daemon

import (
	"errors"

	"saltclusterd/sidecar/saltcrypt/libcrypto"
	"saltclusterd/sidecar/signin"
)

// operations are the cluster's private key as sign-ins and publications use it: OpenSSL's where this program was built for it and the host
// has one that is fit, else Go's.
func (m *member) operations() signin.Identity {
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
