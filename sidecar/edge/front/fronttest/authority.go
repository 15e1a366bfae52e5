package fronttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate // what was signed
	pem  []byte
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority of its own.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, key: newKey(t)}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, a.pem = template, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Pool has the authority alone.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(a.pem)
	return p
}

// Issue signs a certificate for 127.0.0.1 with these names, which is good for a server and for a client.
func (a *Authority) Issue(commonName string, hosts ...string) tls.Certificate {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName},
		NotAfter: time.Now().Add(time.Hour), DNSNames: hosts, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Server is the configuration of a server.
func (a *Authority) Server(clients tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.Issue("edge")}, ClientAuth: clients, ClientCAs: a.Pool()}
}

// Client is the configuration of a client; without a certificate when commonName is empty.
func (a *Authority) Client(commonName string, hosts ...string) *tls.Config {
	c := &tls.Config{RootCAs: a.Pool(), ServerName: "127.0.0.1"}
	if commonName != "" {
		c.Certificates = []tls.Certificate{a.Issue(commonName, hosts...)}
	}
	return c
}
