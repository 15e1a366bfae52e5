package front

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net/netip"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
)

// issuer is a certificate that may sign others.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue returns an issuer whose certificate was signed by another one, or by itself.
func issue(t *testing.T, name string, by *issuer) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &issuer{cert, key}
}

// TestVerifyChain: one way to an authority is tried, whatever a peer shows.
func TestVerifyChain(t *testing.T) {
	ca := issue(t, "authority", nil)
	between, other := issue(t, "between", ca), issue(t, "between", ca)
	leaf := issue(t, "m1", between)
	far := []*issuer{ca}
	for range maxChain {
		far = append(far, issue(t, time.Now().String(), far[len(far)-1]))
	}
	var long []*x509.Certificate
	for i := len(far) - 1; i > 0; i-- {
		long = append(long, far[i].cert)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	for name, c := range map[string]struct {
		shown []*x509.Certificate
		pool  *x509.CertPool
		ok    bool
		want  error
	}{
		"whole":                   {[]*x509.Certificate{leaf.cert, between.cert, ca.cert}, pool, true, nil},
		"in another order":        {[]*x509.Certificate{leaf.cert, ca.cert, between.cert, other.cert}, pool, true, nil},
		"two of one name":         {[]*x509.Certificate{leaf.cert, other.cert, between.cert}, pool, false, nil},
		"incomplete":              {[]*x509.Certificate{leaf.cert}, pool, false, nil},
		"as long as may be":       {long, pool, true, nil},
		"too long":                {append([]*x509.Certificate{issue(t, "m2", far[maxChain]).cert}, long...), pool, false, errChain},
		"no authority is known":   {[]*x509.Certificate{leaf.cert, between.cert}, nil, false, nil},
		"not that of an issuer's": {[]*x509.Certificate{issue(t, "m3", nil).cert}, pool, false, nil},
	} {
		chains, err := verifyChain(c.pool, c.shown)
		if (err == nil) != c.ok || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if c.ok && (len(chains) != 1 || chains[0][0] != c.shown[0]) {
			t.Errorf("%s: %d chains", name, len(chains))
		}
	}
}

// TestHandshake_VerifiesInTurn: also what a peer's certificates cost is computed with a turn, and an identity is what
// was verified.
func TestHandshake_VerifiesInTurn(t *testing.T) {
	ca, another := tlstest.NewCA(t, "authority"), tlstest.NewCA(t, "another")
	for name, c := range map[string]struct {
		auth   tls.ClientAuthType
		client *tls.Config
		max    uint16
		ok     bool
		id     string
	}{
		"required":                {tls.RequireAndVerifyClientCert, ca.Client("m1"), tls.VersionTLS13, true, "m1"},
		"required, 1.2":           {tls.RequireAndVerifyClientCert, ca.Client("m1"), tls.VersionTLS12, true, "m1"},
		"required, none":          {tls.RequireAndVerifyClientCert, ca.Client(""), tls.VersionTLS13, false, ""},
		"required, of another":    {tls.RequireAndVerifyClientCert, another.Client("m1"), tls.VersionTLS13, false, ""},
		"optional":                {tls.VerifyClientCertIfGiven, ca.Client("m1"), tls.VersionTLS13, true, "m1"},
		"optional, none":          {tls.VerifyClientCertIfGiven, ca.Client(""), tls.VersionTLS13, true, ""},
		"optional, of another":    {tls.VerifyClientCertIfGiven, another.Client("m1"), tls.VersionTLS13, false, ""},
		"asked for, not verified": {tls.RequestClientCert, another.Client("m1"), tls.VersionTLS13, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			turns := NewTurns(1)
			cfg := ca.Server(c.auth)
			asked := false
			cfg.VerifyConnection = func(s tls.ConnectionState) error {
				asked = true
				turns.mu.Lock()
				defer turns.mu.Unlock()
				check.Equal(t, turns.free, 0, "turns that are free")
				check.Equal(t, len(s.VerifiedChains) > 0, c.id != "", "a chain is verified")
				return nil
			}
			f := New(Config{TLS: func() *tls.Config { return cfg }, Turns: turns})
			server, client := tcpPair(t)
			l, err := f.Divert(server, nil, netip.Addr{})
			require.NoError(t, err)
			c.client.MaxVersion, c.client.RootCAs = c.max, ca.Pool()
			c.client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				if len(c.client.Certificates) == 0 {
					return &tls.Certificate{}, nil
				}
				return &c.client.Certificates[0], nil // though the server has not named its issuer
			}
			inside := tls.Client(client, c.client)
			if inside.Handshake() == nil {
				_, _ = inside.Write([]byte("x"))
			}
			_, err = l.Read()
			if (err == nil) != c.ok || c.ok != asked || c.ok == errors.Is(err, ErrTLS) {
				t.Errorf("%v, asked %v", err, asked)
			}
			if id := l.Identity(); id.Has("m1") != (c.id == "m1") || len(id.Names) > 0 != (c.id != "") {
				t.Errorf("is %v", id)
			}
			l.End(true)
			f.Wait()
			check.Equal(t, turns.free, 1, "turns that are free afterwards")
		})
	}
}
