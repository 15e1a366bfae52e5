package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
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

// shown is what the other side of a connection presented: its certificate, and the fingerprints of that one and of its
// predecessors.
type shown struct {
	cert *x509.Certificate
	fps  []node.Fingerprint
}

// peerCert checks what the other side presented.
func peerCert(cs tls.ConnectionState) (shown, error) {
	fps, err := checkChain(cs.PeerCertificates)
	if err != nil {
		return shown{}, err
	}
	return shown{cs.PeerCertificates[0], fps}, nil
}

// fingerprint is the fingerprint of its certificate.
func (s shown) fingerprint() node.Fingerprint { return s.fps[0] }

// knownAs returns the fingerprint by which a roster with that entry knows it.
func (s shown) knownAs(e node.Entry) (node.Fingerprint, bool) {
	return e.Fingerprint, slices.Contains(s.fps, e.Fingerprint)
}

// findMember finds out whose certificate it is, and by which fingerprint the roster knows it.
func (s shown) findMember(r Roster) (node.ID, node.Fingerprint, error) {
	if id, ok := r.ByFingerprint(s.fingerprint()); ok {
		return id, s.fingerprint(), nil
	}
	if len(s.fps) > 1 {
		id, err := idFromCert(s.cert)
		if err != nil {
			return "", "", err
		}
		if e, ok := r.Lookup(id); ok && slices.Contains(s.fps, e.Fingerprint) {
			return id, e.Fingerprint, nil
		}
	}
	return "", "", ErrNotMember
}
