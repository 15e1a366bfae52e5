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
	"sync/atomic"
	"time"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

// Names of the files LoadIdentity keeps in the state directory.
const (
	KeyFile  = "node.key" // PKCS #8, PEM, mode 0600
	CertFile = "node.crt" // X.509, PEM
)

// maxIdentityFile bounds what is read from disk, in bytes.
const maxIdentityFile = 16 << 10

// Identity is a node's own key and self-signed certificate. The key stays on the node; not even the cluster holds
// it. Renew replaces both.
type Identity struct {
	id  node.ID
	cur atomic.Pointer[credential]
}

// credential is a key and the certificates that are shown with it: its own, then the predecessors.
type credential struct {
	cert tls.Certificate
	fp   node.Fingerprint // of its own
}

func (i *Identity) currentCert() *credential { return i.cur.Load() }

// NewIdentity makes a fresh identity in memory. The certificate does not expire in practice: trust comes from the
// roster alone, and ends there.
func NewIdentity(id node.ID) (*Identity, error) {
	if !id.Valid() {
		return nil, fmt.Errorf("new identity: %w %q", node.ErrInvalidID, id)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	der, err := newCertificate(id, time.Now(), key, nil, key)
	if err != nil {
		return nil, fmt.Errorf("new identity: %w", err)
	}
	return identityFrom(id, [][]byte{der}, key)
}

// longAgo is the beginning that the first kind of certificates had.
var longAgo = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// newCertificate makes a certificate for key, signed by its predecessor's key or, without one, by its own. NotBefore
// only says when it was made: no node checks the period of validity, because a node's clock may be wrong at
// first start.
func newCertificate(id node.ID, made time.Time, key *ecdsa.PrivateKey, parent *x509.Certificate,
	signer *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: string(id)},
		URIs:         []*url.URL{sanURI(id)},
		NotBefore:    made.UTC().Truncate(time.Second),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if parent == nil {
		parent = template
	}
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
}

// LoadIdentity reads the identity from dir, or makes and stores one when there is none. An identity made for another
// id, or one of which only a part is left, is an error: replacing it silently would lock the node out of its cluster.
func LoadIdentity(dir string, id node.ID) (*Identity, error) {
	if err := repairRenewal(dir); err != nil {
		return nil, fmt.Errorf("load node identity: %w", err)
	}
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
		return nil, fmt.Errorf("load node identity from %s: %w; restore %s and %s from a backup, or remove the node from the cluster, delete them, "+
			"and join again", dir, err, KeyFile, CertFile)
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
			"the node from the cluster, empty that directory, and join again", dir, was, id)
	}
	return identityFrom(id, withPredecessors(dir, pair.Certificate[0]), key)
}

func identityFrom(id node.ID, chain [][]byte, key *ecdsa.PrivateKey) (*Identity, error) {
	c, err := credentialFrom(chain, key)
	if err != nil {
		return nil, err
	}
	i := &Identity{id: id}
	i.cur.Store(c)
	return i, nil
}

func credentialFrom(chain [][]byte, key *ecdsa.PrivateKey) (*credential, error) {
	certs, err := parseChain(chain)
	if err != nil {
		return nil, err
	}
	return &credential{
		cert: tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: certs[0]},
		fp:   node.FingerprintOf(chain[0]),
	}, nil
}

func createIdentity(dir string, id node.ID) (*Identity, error) {
	ident, err := NewIdentity(id)
	if err != nil {
		return nil, err
	}
	key, err := keyPEM(ident.currentCert())
	if err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, KeyFile), key, 0o600); err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	if err := durable.WriteFile(filepath.Join(dir, CertFile), certPEM(ident.currentCert().cert.Certificate[0]),
		0o644); err != nil {
		return nil, fmt.Errorf("store node identity: %w", err)
	}
	return ident, nil
}

func keyPEM(c *credential) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func certPEM(ders ...[]byte) []byte {
	var out []byte
	for _, der := range ders {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out
}

// ID returns the node the identity was made for.
func (i *Identity) ID() node.ID { return i.id }

// Fingerprint returns what the roster has to know about this identity.
func (i *Identity) Fingerprint() node.Fingerprint { return i.currentCert().fp }
