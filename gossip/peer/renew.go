package peer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"saltclusterd/durable"
	"saltclusterd/gossip/node"
)

// A node renews its certificate by making a new key and having the new certificate signed by the old key. It presents
// the new one together with its predecessors, so a member whose roster still has an older one finds it among them. This
// gives no more trust than the roster does, because the holder of the old key could present the old certificate, and it
// ends when the roster has the new one. So two nodes recognise each other at any moment, and a node that was down
// returns without help, as long as the certificates on its roster are among the last predecessors.

// Names of further files in the state directory.
const (
	chainFile = "node.chain" // predecessors of node.crt, newest first, PEM
	nextKey   = "node.key.next"
	nextCert  = "node.crt.next"
)

// maxChain bounds the certificates a node shows: its own and its predecessors.
const maxChain = 8

// Renew gives the identity a new key and certificate, in dir and in memory; now goes into the certificate. A crash
// leaves the old or the new one, never a mixture. The caller makes the new fingerprint known to the roster. Nothing may
// be renewed twice at the same time.
func (i *Identity) Renew(dir string, now time.Time) (was, is node.Fingerprint, err error) {
	old := i.currentCert()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("renew the node's certificate: %w", err)
	}
	signer, ok := old.cert.PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		return "", "", errors.New("renew the node's certificate: the old key is not one of ours")
	}
	der, err := newCertificate(i.id, now, key, old.cert.Leaf, signer)
	if err != nil {
		return "", "", fmt.Errorf("renew the node's certificate: %w", err)
	}
	chain := append([][]byte{der}, old.cert.Certificate...)
	next, err := credentialFrom(chain[:min(len(chain), maxChain)], key)
	if err == nil {
		err = storeRenewed(dir, next, durable.SyncDir)
	}
	if err != nil {
		return "", "", fmt.Errorf("renew the node's certificate: %w", err)
	}
	i.cur.Store(next)
	return old.fp, next.fp, nil
}

// Reload takes over what another process of this node has renewed. It reports whether there was something.
func (i *Identity) Reload(dir string) (bool, error) {
	fresh, err := LoadIdentity(dir, i.id)
	if err != nil {
		return false, err
	}
	next := fresh.currentCert()
	return i.cur.Swap(next).fp != next.fp, nil
}

// Made returns when the certificate was made; zero for the first kind of certificates, which do not say it.
func (i *Identity) Made() time.Time {
	t := i.currentCert().cert.Leaf.NotBefore
	if t.Equal(longAgo) {
		return time.Time{}
	}
	return t
}

// Knows reports whether fp is the fingerprint of the identity's certificate or of a predecessor that is still shown.
func (i *Identity) Knows(fp node.Fingerprint) bool {
	for _, der := range i.currentCert().cert.Certificate {
		if node.FingerprintOf(der) == fp {
			return true
		}
	}
	return false
}

// storeRenewed writes a renewed credential. Renaming the key is what makes it the one in force. Each rename is on the
// disk before the next: a file system without a journal may write them in any order, and repairRenewal tells a renewal
// that was cut off by node.crt.next being there.
func storeRenewed(dir string, c *credential, syncDir func(string) error) error {
	key, err := keyPEM(c)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(dir, chainFile), certPEM(c.cert.Certificate[1:]...), 0o644); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(dir, nextCert), certPEM(c.cert.Certificate[0]), 0o644); err != nil {
		return err
	}
	if err := durable.WriteFile(filepath.Join(dir, nextKey), key, 0o600); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, nextKey), filepath.Join(dir, KeyFile)); err != nil {
		return err
	}
	return finishRenewal(dir, syncDir)
}

// finishRenewal makes the certificate the one in force, once the key is on the disk as that.
func finishRenewal(dir string, syncDir func(string) error) error {
	if err := syncDir(dir); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, nextCert), filepath.Join(dir, CertFile)); err != nil {
		return err
	}
	return syncDir(dir)
}

// repairRenewal finishes or forgets a renewal that a crash has cut off.
func repairRenewal(dir string) error {
	cert, err := readLimited(filepath.Join(dir, nextCert))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	key, err := readLimited(filepath.Join(dir, KeyFile))
	if err != nil {
		return err
	}
	if _, err := tls.X509KeyPair(cert, key); err == nil {
		return finishRenewal(dir, durable.SyncDir)
	}
	for _, name := range []string{nextKey, nextCert} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// withPredecessors adds the certificates of the chain file that vouch for der, one after the other. It stops
// at the first that does not fit: without predecessors a node is only unknown to those that have not heard of its new
// certificate.
func withPredecessors(dir string, der []byte) [][]byte {
	chain := [][]byte{der}
	text, err := readUpTo(filepath.Join(dir, chainFile), maxChain*maxIdentityFile)
	if err != nil {
		return chain
	}
	for block, rest := pem.Decode(text); block != nil && len(chain) < maxChain; block, rest = pem.Decode(rest) {
		if bytes.Equal(block.Bytes, chain[len(chain)-1]) {
			continue // written before the certificate itself was
		}
		longer := append(chain[:len(chain):len(chain)], block.Bytes)
		if _, err := parseChain(longer); err != nil {
			break
		}
		chain = longer
	}
	return chain
}

// parseChain reads and checks what a node shows.
func parseChain(ders [][]byte) ([]*x509.Certificate, error) {
	certs := make([]*x509.Certificate, len(ders))
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("parse node certificate: %w", err)
		}
		certs[i] = c
	}
	_, err := checkChain(certs)
	return certs, err
}

// checkChain returns the fingerprints of a certificate and its predecessors: each of our shape, of the same node, and
// signed with the key of the next.
func checkChain(certs []*x509.Certificate) ([]node.Fingerprint, error) {
	if len(certs) == 0 || len(certs) > maxChain {
		return nil, fmt.Errorf("%d certificates, 1 to %d are allowed", len(certs), maxChain)
	}
	fps := make([]node.Fingerprint, len(certs))
	for i, c := range certs {
		if err := checkCert(c); err != nil {
			return nil, err
		}
		fps[i] = node.FingerprintOf(c.Raw)
		if i == 0 {
			continue
		}
		if err := checkSuccessor(certs[i-1], c); err != nil {
			return nil, err
		}
	}
	return fps, nil
}

// checkSuccessor checks that next was made by the holder of prev and is of the same node.
func checkSuccessor(next, prev *x509.Certificate) error {
	id, err := idFromCert(next)
	if err != nil {
		return err
	}
	was, err := idFromCert(prev)
	switch {
	case err != nil:
		return err
	case id != was:
		return fmt.Errorf("a certificate of %s cannot sign one of %s", was, id)
	case bytes.Equal(next.RawSubjectPublicKeyInfo, prev.RawSubjectPublicKeyInfo):
		return errors.New("a certificate cannot sign itself")
	case next.SignatureAlgorithm != x509.ECDSAWithSHA256:
		return errors.New("unknown signature algorithm of a certificate")
	}
	if err := prev.CheckSignature(next.SignatureAlgorithm, next.RawTBSCertificate, next.Signature); err != nil {
		return errors.New("a certificate is not signed by its predecessor")
	}
	return nil
}
