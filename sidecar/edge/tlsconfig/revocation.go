package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// errRevoked is the reason of a refused certificate.
var errRevoked = errors.New("the certificate was revoked by its issuer")

// verifier looks minions' certificates up in the revocation lists. As in OpenSSL a certificate whose issuer has no
// valid list is refused.
func (l *Loaded) verifier(which Revocation) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return nil
		}
		err := errors.New("the certificate was not verified")
		for _, chain := range s.VerifiedChains {
			if err = l.checkChain(chain, which, time.Now()); err == nil {
				return nil
			}
		}
		return err
	}
}

func (l *Loaded) checkChain(chain []*x509.Certificate, which Revocation, now time.Time) error {
	for i := range len(chain) - 1 {
		if err := l.checkRevoked(chain[i], chain[i+1], now); err != nil {
			return err
		}
		if which == RevocationLeaf {
			break
		}
	}
	return nil
}

func (l *Loaded) checkRevoked(cert, issuer *x509.Certificate, now time.Time) error {
	found := false
	for _, list := range l.lists[string(cert.RawIssuer)] {
		if list.CheckSignatureFrom(issuer) != nil || !list.NextUpdate.IsZero() && now.After(list.NextUpdate) {
			continue
		}
		found = true
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(cert.SerialNumber) == 0 {
				return errRevoked
			}
		}
	}
	if !found {
		return fmt.Errorf("ca_certs has no revocation list of %s that is signed and not out of date", issuer.Subject)
	}
	return nil
}
