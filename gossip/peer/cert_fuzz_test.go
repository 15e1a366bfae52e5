package peer

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"saltclusterd/integration/require"
)

// FuzzPeerCert is what somebody can present in the handshake, before a roster is asked about it.
func FuzzPeerCert(f *testing.F) {
	ident, err := NewIdentity("m1")
	require.NoError(f, err)
	f.Add(ident.currentCert().cert.Certificate[0])
	f.Add([]byte("\x30\x82"))
	f.Fuzz(func(t *testing.T, der []byte) {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return
		}
		if checkCert(c) == nil && len(der) > maxCert {
			t.Fatalf("a certificate of %d bytes", len(der))
		}
		if id, err := idFromCert(c); err == nil && (!id.Valid() || *c.URIs[0] != *sanURI(id)) {
			t.Fatalf("%s names %q", c.URIs[0], id)
		}
	})
}

// FuzzClusterPub is the key that a member shows to a joiner, with its signature.
func FuzzClusterPub(f *testing.F) {
	f.Add([]byte("-----BEGIN PUBLIC KEY-----\nMA==\n-----END PUBLIC KEY-----"), []byte("message"), []byte("sig"))
	f.Add([]byte("-----BEGIN RSA PUBLIC KEY-----\n\n-----END RSA PUBLIC KEY-----"), []byte{}, []byte{})
	f.Add([]byte("0a:1B"), []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, pub, message, sig []byte) {
		if key, err := parseClusterPub(pub); err == nil {
			if bits := key.N.BitLen(); bits < minKeyBits || bits > maxKeyBits || len(pub) > maxPubPEM {
				t.Fatalf("a key of %d bits in %d bytes", bits, len(pub))
			}
			if verifyCluster(pub, message, sig) == nil {
				t.Fatal("a signature nobody has made is good")
			}
		}
		if _, err := ParseClusterKey(pub, message); err == nil {
			t.Fatal("a private key that nobody has given")
		}
		if text, err := ParsePubFingerprint(string(pub)); err == nil && len(text) != 64 {
			t.Fatalf("the fingerprint %q", text)
		}
	})
}

// FuzzIdentity reads the two files of a node's own identity, which a backup may bring back damaged or another node's.
func FuzzIdentity(f *testing.F) {
	ident, err := NewIdentity("m1")
	require.NoError(f, err)
	key, err := x509.MarshalPKCS8PrivateKey(ident.currentCert().cert.PrivateKey)
	require.NoError(f, err)
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ident.currentCert().cert.Certificate[0]})
	if _, err := parseIdentity("dir", "m1", keyPEM, certPEM); err != nil {
		f.Fatal(err)
	}
	f.Add(keyPEM, certPEM)
	f.Add(certPEM, keyPEM)
	f.Fuzz(func(t *testing.T, keyPEM, certPEM []byte) {
		if i, err := parseIdentity("dir", "m1", keyPEM, certPEM); err == nil && (i.id != "m1" || len(i.currentCert().fp) != 64) {
			t.Fatalf("the identity %+v", i)
		}
	})
}
