package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"saltclusterd/gossip/node"
)

// maxCert bounds a certificate a peer presents, in bytes of DER; ours have about 450.
const maxCert = 2 << 10

// Node certificates carry spiffe://saltcluster/node/<id> as their only URI. It names the node before a roster knows it
// (in join); afterwards the fingerprint decides.
const (
	sanTrust  = "saltcluster"
	sanPrefix = "/node/"
)

func sanURI(id node.ID) *url.URL {
	return &url.URL{Scheme: "spiffe", Host: sanTrust, Path: sanPrefix + string(id)}
}

// idFromCert returns the node id a certificate claims.
func idFromCert(c *x509.Certificate) (node.ID, error) {
	if len(c.URIs) != 1 {
		return "", errors.New("certificate does not carry exactly one URI")
	}
	u := c.URIs[0]
	name, ok := strings.CutPrefix(u.Path, sanPrefix)
	if !ok || u.Scheme != "spiffe" || u.Host != sanTrust {
		return "", errors.New("certificate does not name a node")
	}
	id, err := node.ParseID(name)
	if err != nil || *u != *sanURI(id) {
		return "", errors.New("certificate does not name a valid node id")
	}
	return id, nil
}

// checkCert accepts the only shape of certificate our nodes have.
func checkCert(c *x509.Certificate) error {
	if len(c.Raw) > maxCert {
		return fmt.Errorf("certificate of %d bytes, at most %d are allowed", len(c.Raw), maxCert)
	}
	key, ok := c.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return errors.New("certificate key is not P-256")
	}
	return nil
}

// peerCert returns the one certificate the other side presented.
func peerCert(cs tls.ConnectionState) (*x509.Certificate, node.Fingerprint, error) {
	if len(cs.PeerCertificates) != 1 {
		return nil, "", fmt.Errorf("%d certificates instead of one", len(cs.PeerCertificates))
	}
	c := cs.PeerCertificates[0]
	if err := checkCert(c); err != nil {
		return nil, "", err
	}
	return c, node.FingerprintOf(c.Raw), nil
}
