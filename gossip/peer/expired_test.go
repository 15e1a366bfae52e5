package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net/url"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

// The roster alone decides who belongs: a certificate that is over, or not good yet because a clock is wrong, is a
// member's in both directions.
func TestDial_CertificateDates(t *testing.T) {
	for what, from := range map[string]time.Time{"over": time.Now().AddDate(-2, 0, 0),
		"not good yet": time.Now().AddDate(1, 0, 0)} {
		t.Run(what, func(t *testing.T) {
			m := newMesh(t)
			a := m.member("node-a", nil)
			b := m.member("node-b", func(c *Config) { c.Identity = during(t, "node-b", from, from.AddDate(1, 0, 0)) })
			for _, way := range [][2]*Port{{a, b}, {b, a}} {
				echo(t, way[1], ProtoRaft)
				if err := works(dial(t, way[0], way[1].ID(), ProtoRaft)); err != nil {
					t.Errorf("%s to %s: %v", way[0].ID(), way[1].ID(), err)
				}
			}
		})
	}
}

// during makes an identity whose certificate is good for a time only; ours never are.
func during(t *testing.T, id node.ID, from, to time.Time) *Identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: string(id)}, URIs: []*url.URL{sanURI(id)},
		NotBefore: from, NotAfter: to,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	i, err := identityFrom(id, [][]byte{der}, key)
	require.NoError(t, err)
	return i
}
