package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/gossip/node"
)

// Names of the files LoadIdentity keeps in the state directory.
const (
	KeyFile  = "node.key" // PKCS #8, PEM, mode 0600
	CertFile = "node.crt" // X.509, PEM
)

// maxIdentityFile bounds what is read from disk, in bytes.
const maxIdentityFile = 16 << 10

// Identity is a node's own key and self-signed certificate. Nobody else ever holds the key, not even the cluster.
type Identity struct {
	id   node.ID
	cert tls.Certificate
	fp   node.Fingerprint
}

// NewIdentity makes a fresh identity in memory. The certificate does not expire in practice: trust comes from the roster
// alone, and ends there.
func NewIdentity(id node.ID) (*Identity, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("new identity: %w %q", node.ErrInvalidID, id)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: string(id)},
		URIs:         []*url.URL{sanURI(id)},
		NotBefore:    time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), // a node's clock may be wrong at first start
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	return identityFrom(id, der, key)
}

// LoadIdentity reads the identity from dir, or makes and stores one when there is none. An identity made for another id, or
// one of which only a part is left, is an error: replacing it silently would lock the node out of its cluster.
func LoadIdentity(dir string, id node.ID) (*Identity, error) {
	keyPEM, keyErr := readLimited(filepath.Join(dir, KeyFile))
	certPEM, certErr := readLimited(filepath.Join(dir, CertFile))
	switch {
	case errors.Is(keyErr, os.ErrNotExist) && errors.Is(certErr, os.ErrNotExist):
		return createIdentity(dir, id)
	case errors.Is(certErr, os.ErrNotExist):
		// The key is written first; a crash between the two leaves a key no roster can know.
		return createIdentity(dir, id)
	case keyErr != nil:
		return nil, fmt.Errorf("load node identity: %w", keyErr)
	case certErr != nil:
		return nil, fmt.Errorf("load node identity: %w", certErr)
	}
	if err := checkMode(filepath.Join(dir, KeyFile)); err != nil {
		return nil, err
	}
	return parseIdentity(dir, id, keyPEM, certPEM)
}

func parseIdentity(dir string, id node.ID, keyPEM, certPEM []byte) (*Identity, error) {
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("load node identity from %s: %w", dir, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || len(pair.Certificate) != 1 {
		return nil, fmt.Errorf("load node identity from %s: not one P-256 certificate", dir)
	}
	was, err := idFromCert(pair.Leaf)
	if err != nil {
		return nil, fmt.Errorf("load node identity from %s: %w", dir, err)
	}
	if was != id {
		return nil, fmt.Errorf("the identity in %s was made for the node id %q, but the option id says %q; set it back, or remove "+
			"the node from the cluster, delete %s and %s, and join again", dir, was, id, KeyFile, CertFile)
	}
	return identityFrom(id, pair.Certificate[0], key)
}

func identityFrom(id node.ID, der []byte, key *ecdsa.PrivateKey) (*Identity, error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("parse node certificate: %w", err)
	}
	if err := checkCert(leaf); err != nil {
		return nil, err
	}
	return &Identity{
		id:   id,
		cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf},
		fp:   node.FingerprintOf(der),
	}, nil
}

func createIdentity(dir string, id node.ID) (*Identity, error) {
	ident, err := NewIdentity(id)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(ident.cert.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	key := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ident.cert.Certificate[0]})
	if err := writeFile(dir, KeyFile, key, 0o600); err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	if err := writeFile(dir, CertFile, cert, 0o644); err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	return ident, nil
}

// ID returns the node the identity was made for.
func (i *Identity) ID() node.ID { return i.id }

// Fingerprint returns what the roster has to know about this identity.
func (i *Identity) Fingerprint() node.Fingerprint { return i.fp }
