package front

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// maxChain is how many certificates a peer may show. crypto/x509 tries every way to an authority, with up to 100
// signatures of 3 ms each, also when a stranger asks. With few certificates of different names there is one way.
const maxChain = 10

var errChain = fmt.Errorf("more than %d certificates", maxChain)

// verifies tells whether a configuration has peers' certificates verified.
func verifies(cfg *tls.Config) bool { return cfg.ClientAuth >= tls.VerifyClientCertIfGiven }

// verifyHere has the front, instead of crypto/tls, verify certificates for with, which is a copy of cfg.
func verifyHere(cfg, with *tls.Config) {
	with.ClientAuth = tls.RequestClientCert
	if cfg.ClientAuth == tls.RequireAndVerifyClientCert {
		with.ClientAuth = tls.RequireAnyClientCert
	}
	with.VerifyConnection = func(s tls.ConnectionState) (err error) {
		if len(s.PeerCertificates) > 0 {
			if s.VerifiedChains, err = verifyChain(cfg.ClientCAs, s.PeerCertificates); err != nil {
				return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
			}
		}
		if cfg.VerifyConnection != nil {
			return cfg.VerifyConnection(s)
		}
		return nil
	}
}

// verifyChain verifies the first certificate as that of a client. Of several others with one name the first counts, as
// in OpenSSL.
func verifyChain(authorities *x509.CertPool, shown []*x509.Certificate) ([][]*x509.Certificate, error) {
	if len(shown) > maxChain {
		return nil, errChain
	}
	between, names := x509.NewCertPool(), map[string]bool{}
	for _, c := range shown[1:] {
		if name := string(c.RawSubject); !names[name] {
			names[name] = true
			between.AddCert(c)
		}
	}
	if authorities == nil {
		return nil, errors.New("no authority is known") // crypto/x509 would trust those of the host
	}
	return shown[0].Verify(x509.VerifyOptions{Roots: authorities, Intermediates: between, CurrentTime: time.Now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}
