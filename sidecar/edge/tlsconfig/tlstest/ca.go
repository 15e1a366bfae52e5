// Package tlstest has certificate authorities for tests.
package tlstest

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
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// CA is a certificate authority.
type CA struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	PEM  []byte // its certificate
}

var serial atomic.Int64

// NewCA returns a CA that is valid from an hour ago for a year.
func NewCA(t testing.TB, name string) *CA {
	t.Helper()
	c := &CA{t: t}
	c.key = newKey(t)
	number := serial.Add(1)
	c.cert = &x509.Certificate{
		SerialNumber: big.NewInt(number), SubjectKeyId: []byte{byte(number >> 8), byte(number)},
		Subject: pkix.Name{CommonName: name}, IsCA: true,
		BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	c.PEM = c.sign(c.cert, c.cert, c.key)
	return c
}

// Wanted is a certificate to be issued.
type Wanted struct {
	Name     string   // common name
	DNS      []string // subject alternative names
	IPs      []string
	From, To time.Time                        // zero: a year that began an hour ago
	Usage    []x509.ExtKeyUsage               // nil: server and client
	Change   func(template *x509.Certificate) // nil: nothing else
}

// Issue returns a certificate and its key as PEM.
func (c *CA) Issue(w Wanted) (cert, key []byte) {
	c.t.Helper()
	k := newKey(c.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial.Add(1)), Subject: pkix.Name{CommonName: w.Name}, DNSNames: w.DNS,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0), ExtKeyUsage: w.Usage,
		KeyUsage: x509.KeyUsageDigitalSignature, BasicConstraintsValid: true,
	}
	if !w.To.IsZero() {
		template.NotBefore, template.NotAfter = w.From, w.To
	}
	if w.Usage == nil {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	for _, ip := range w.IPs {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
	}
	if w.Change != nil {
		w.Change(template)
	}
	cert = c.sign(template, c.cert, k)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Pool has the CA alone.
func (c *CA) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AppendCertsFromPEM(c.PEM)
	return p
}

// Server is the configuration of a server at 127.0.0.1.
func (c *CA) Server(clients tls.ClientAuthType) *tls.Config {
	return &tls.Config{
		Certificates: c.pairOf(Wanted{Name: "edge", IPs: []string{"127.0.0.1"}}), ClientAuth: clients, ClientCAs: c.Pool(),
	}
}

// Client is the configuration of a client of that server; without a certificate when commonName is empty.
func (c *CA) Client(commonName string, hosts ...string) *tls.Config {
	cfg := &tls.Config{RootCAs: c.Pool(), ServerName: "127.0.0.1"}
	if commonName != "" {
		cfg.Certificates = c.pairOf(Wanted{Name: commonName, DNS: hosts})
	}
	return cfg
}

func (c *CA) pairOf(w Wanted) []tls.Certificate {
	c.t.Helper()
	pair, err := tls.X509KeyPair(c.Issue(w))
	if err != nil {
		c.t.Fatal(err)
	}
	return []tls.Certificate{pair}
}

// Revoke returns a revocation list with the certificate of a serial number, as PEM; nil: an empty one.
func (c *CA) Revoke(number *big.Int, until time.Time) []byte {
	c.t.Helper()
	list := &x509.RevocationList{
		Number: big.NewInt(serial.Add(1)), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: until,
	}
	if number != nil {
		list.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: number, RevocationTime: list.ThisUpdate}}
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, c.cert, c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
}

func (c *CA) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	c.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Write puts files into a directory, each whole or not at all, in the order of the pairs of name and text.
func Write(t testing.TB, dir string, pairs ...any) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i].(string))
		if err := os.WriteFile(path+".new", pairs[i+1].([]byte), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}
