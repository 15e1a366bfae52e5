package tlsconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/health"
)

// site is a directory with the files of a master's TLS.
type site struct {
	t      *testing.T
	dir    string
	ca     *tlstest.CA
	source *Source
	log    bytes.Buffer
}

const files = "certfile: @/c.pem, keyfile: @/k.pem, ca_certs: @/ca.pem"

// newSite has a certificate, key and CA, and a Source that uses them by the option.
func newSite(t *testing.T, ssl string) *site {
	s := &site{t: t, dir: t.TempDir(), ca: tlstest.NewCA(t, "ours")}
	cert, key := s.ca.Issue(tlstest.Wanted{Name: "master", IPs: []string{"127.0.0.1"}})
	tlstest.Write(t, s.dir, "c.pem", cert, "k.pem", key, "ca.pem", s.ca.PEM)
	s.source = NewSource(slog.New(slog.NewTextHandler(&s.log, nil)))
	s.source.Use(loadMaster(t, 3007, "ssl: {"+strings.ReplaceAll(ssl, "@", s.dir)+"}\n"))
	return s
}

// connect returns the serial number of the certificate that a client is shown, and the client's error.
func (s *site) connect(change func(*tls.Config)) (serial string, err error) {
	s.t.Helper()
	cfg := s.source.Config()
	if cfg == nil {
		return "", errors.New("TLS is refused")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(s.t, err)
	defer listener.Close()
	done := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			defer conn.Close()
			server := tls.Server(conn, cfg)
			if err = server.Handshake(); err == nil {
				_, err = server.Write([]byte("x"))
			}
		}
		done <- err
	}()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM)
	client := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(client)
	}
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err == nil {
		defer conn.Close()
		_, err = io.ReadFull(conn, make([]byte, 1))
		serial = fmt.Sprint(conn.ConnectionState().PeerCertificates[0].SerialNumber)
	}
	if server := <-done; server != nil {
		err = fmt.Errorf("%w; the server: %w", err, server)
	}
	return serial, err
}

// with gives a client a certificate.
func with(cert, key []byte) func(*tls.Config) {
	return func(c *tls.Config) {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			panic(err)
		}
		// As OpenSSL's clients it shows what it has, whoever the server trusts.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
}

func TestSource_ClientCertificates(t *testing.T) {
	foreign := tlstest.NewCA(t, "ours") // of the same name
	now := time.Now()
	for _, c := range []struct {
		reqs   string
		client func(s *site) func(*tls.Config)
		want   string // of the error; empty: none
	}{
		{reqs: "CERT_NONE"},
		{reqs: "CERT_OPTIONAL"},
		{reqs: "CERT_REQUIRED", want: "client didn't provide a certificate"},
		{"CERT_REQUIRED", func(s *site) func(*tls.Config) { return with(s.ca.Issue(tlstest.Wanted{Name: "m"})) }, ""},
		{"CERT_OPTIONAL", func(*site) func(*tls.Config) { return with(foreign.Issue(tlstest.Wanted{Name: "m"})) }, "verify certificate"},
		{"CERT_REQUIRED", func(*site) func(*tls.Config) { return with(foreign.Issue(tlstest.Wanted{Name: "m"})) }, "verify certificate"},
		{"CERT_REQUIRED", func(s *site) func(*tls.Config) {
			return with(s.ca.Issue(tlstest.Wanted{Name: "m", From: now.Add(-2 * time.Hour), To: now.Add(-time.Hour)}))
		}, "expired"},
		{"CERT_REQUIRED", func(s *site) func(*tls.Config) {
			return with(s.ca.Issue(tlstest.Wanted{Name: "m", Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}))
		}, "incompatible key usage"},
	} {
		s := newSite(t, files+", cert_reqs: "+c.reqs)
		var client func(*tls.Config)
		if c.client != nil {
			client = c.client(s)
		}
		if _, err := s.connect(client); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, want %q: %v", c.reqs, c.want, err)
		}
	}
}

func TestSource_VersionsAndCiphers(t *testing.T) {
	s := newSite(t, files+", ssl_version: PROTOCOL_TLSv1_2, ciphers: ECDHE-ECDSA-AES256-GCM-SHA384")
	for want, change := range map[bool]func(*tls.Config){
		true:  func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384} },
		false: func(c *tls.Config) { c.MinVersion = tls.VersionTLS13 },
	} {
		if _, err := s.connect(change); (err == nil) != want {
			t.Errorf("want %v: %v", want, err)
		}
	}
	if _, err := s.connect(func(c *tls.Config) {
		c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
	}); err == nil {
		t.Error("another cipher is served")
	}
}

func TestSource_Revocation(t *testing.T) {
	for _, flag := range []string{"VERIFY_CRL_CHECK_LEAF", "VERIFY_CRL_CHECK_CHAIN"} {
		s := newSite(t, files+", cert_reqs: CERT_REQUIRED, verify_flags: ["+flag+"], verify_locations: [@/ca.pem, {capath: @}]")
		var number *big.Int
		cert, key := s.ca.Issue(tlstest.Wanted{Name: "m", Change: func(c *x509.Certificate) { number = c.SerialNumber }})
		later := time.Now().Add(time.Hour)
		for _, c := range []struct {
			list []byte
			want string
		}{
			{nil, "no revocation list"},
			{s.ca.Revoke(nil, later), ""},
			{s.ca.Revoke(number, later), "revoked by its issuer"},
			{s.ca.Revoke(nil, time.Now().Add(-time.Minute)), "no revocation list"},
			{tlstest.NewCA(t, "ours").Revoke(nil, later), "no revocation list"},
		} {
			if c.list != nil {
				tlstest.Write(t, s.dir, "0123abcd.r0", c.list)
			}
			s.source.Check(t.Context())
			if _, err := s.connect(with(cert, key)); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, want %q: %v", flag, c.want, err)
			}
		}
	}
}

func TestSource_Reload(t *testing.T) {
	s := newSite(t, files)
	first, err := s.connect(nil)
	require.NoError(t, err)
	cert, key := s.ca.Issue(tlstest.Wanted{Name: "next", IPs: []string{"127.0.0.1"}})
	for _, c := range []struct {
		what   string
		pairs  []any
		reason string // of the health check; empty: it is well
		next   bool   // the new certificate is served
	}{
		{"nothing changed", nil, "", false},
		{"the certificate alone", []any{"c.pem", cert}, "private key does not match", false},
		{"a key cut short", []any{"k.pem", key[:len(key)/2]}, "find any PEM data in key", false},
		{"a key with a passphrase", []any{"k.pem", []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")}, "passphrase", false},
		{"both", []any{"k.pem", key}, "", true},
		{"no certificate", []any{"c.pem", []byte("x")}, "find any PEM data in certificate", true},
		{"the same again", []any{"c.pem", cert}, "", true},
	} {
		tlstest.Write(t, s.dir, c.pairs...)
		r := s.source.Check(t.Context())
		if (r.Level == health.OK) != (c.reason == "") || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: %+v", c.what, r)
		}
		if serial, err := s.connect(nil); err != nil || (serial == first) == c.next {
			t.Errorf("%s: serial %s, first was %s, %v", c.what, serial, first, err)
		}
	}
	block, _ := pem.Decode(key)
	if body := strings.Split(string(key), "\n")[1]; strings.Contains(s.log.String(), body[:20]) ||
		bytes.Contains(s.log.Bytes(), block.Bytes[:20]) {
		t.Errorf("the log has the key: %s", s.log.String())
	}
	if n := strings.Count(s.log.String(), "TLS certificate loaded"); n != 3 {
		t.Errorf("%d certificates loaded: %s", n, s.log.String())
	}
	require.NoError(t, os.Remove(filepath.Join(s.dir, "k.pem")))
	if r := s.source.Check(t.Context()); !strings.Contains(r.Reason, "the previous ones are still served") {
		t.Errorf("%+v", r)
	}
}

func TestSource_Use(t *testing.T) {
	s := newSite(t, "certfile: @/none.pem")
	if r := s.source.Check(t.Context()); r.Level != health.Warn || !strings.Contains(r.Reason, "minions with TLS are refused") ||
		s.source.Config() != nil {
		t.Errorf("%+v", r)
	}
	cert, key := s.ca.Issue(tlstest.Wanted{Name: "one file", IPs: []string{"127.0.0.1"}})
	tlstest.Write(t, s.dir, "none.pem", append(cert, key...))
	if r := s.source.Check(t.Context()); r.Level != health.OK || s.source.Config() == nil {
		t.Errorf("%+v", r)
	}
	s.source.Use(loadMaster(t, 3007, "ssl: null\n"))
	if r := s.source.Check(t.Context()); r.Level != health.OK || s.source.Config() != nil {
		t.Errorf("switched off: %+v", r)
	}
	s.source.Use(loadMaster(t, 3007, "ssl: {certfile: c, key: k}\n"))
	if r := s.source.Check(t.Context()); r.Level != health.Warn || !strings.Contains(r.Reason, "ssl key is not") {
		t.Errorf("%+v", r)
	}
}

func TestExamine(t *testing.T) {
	ca := tlstest.NewCA(t, "ca")
	now := time.Now()
	day := 24 * time.Hour
	for _, c := range []struct {
		w      tlstest.Wanted
		caFrom time.Duration // how much later the CA is looked at
		want   string
		fatal  bool
	}{
		{w: tlstest.Wanted{}},
		{w: tlstest.Wanted{From: now.Add(-90 * day), To: now.Add(29*day + time.Minute)}, want: "expires in 29 days"},
		{w: tlstest.Wanted{From: now.Add(-90 * day), To: now.Add(31 * day)}},
		{w: tlstest.Wanted{From: now.Add(-day / 2), To: now.Add(day / 2)}}, // of a CA for short-lived ones
		{w: tlstest.Wanted{From: now.Add(-17 * time.Hour), To: now.Add(7 * time.Hour)}, want: "expires in 0 days"},
		{w: tlstest.Wanted{From: now.Add(-2 * day), To: now.Add(-day)}, want: "has expired", fatal: true},
		{w: tlstest.Wanted{From: now.Add(day), To: now.Add(2 * day)}, want: "is not valid before", fatal: true},
		{w: tlstest.Wanted{Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, want: "is not for servers", fatal: true},
		{w: tlstest.Wanted{Change: func(c *x509.Certificate) { c.IPAddresses = nil }}, want: "names no IP address"},
		{w: tlstest.Wanted{To: now.AddDate(9, 0, 0), From: now}, caFrom: 340 * day, want: "in ssl ca_certs expires in"},
		{w: tlstest.Wanted{To: now.AddDate(9, 0, 0), From: now}, caFrom: 370 * day, want: "in ssl ca_certs has expired", fatal: true},
	} {
		c.w.Name, c.w.IPs = "m", []string{"10.0.0.1"}
		cert, key := ca.Issue(c.w)
		dir := t.TempDir()
		tlstest.Write(t, dir, "c", cert, "k", key, "ca", ca.PEM)
		o := &Options{CertFile: dir + "/c", KeyFile: dir + "/k", CAFiles: []string{dir + "/ca"}, ClientAuth: tls.RequireAndVerifyClientCert}
		l, err := o.Load()
		require.NoError(t, err)
		found := l.Examine(now.Add(c.caFrom))
		if c.want == "" && len(found) == 0 {
			continue
		}
		if len(found) != 1 || c.want == "" || !strings.Contains(found[0].Message, c.want) || found[0].Fatal != c.fatal ||
			found[0].Fix == "" {
			t.Errorf("want %q: %+v", c.want, found)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := newSite(t, files+", cert_reqs: CERT_REQUIRED")
	end := s.source.current.Load().Leaf.NotAfter
	s.source.now = func() time.Time { return end.Add(-time.Hour) }
	check.NoError(t, testutil.CollectAndCompare(s.source, strings.NewReader(`
# HELP saltcluster_tls_certificate_expiry_seconds Time until the certificate that minions with TLS are shown expires; negative: it has. Absent without TLS.
# TYPE saltcluster_tls_certificate_expiry_seconds gauge
saltcluster_tls_certificate_expiry_seconds 3600
`), "saltcluster_tls_certificate_expiry_seconds"))
	if n := testutil.CollectAndCount(s.source); n != 3 {
		t.Errorf("%d metrics", n)
	}
	s.source.Use(loadMaster(t, 3007, ""))
	if n := testutil.CollectAndCount(s.source); n != 0 {
		t.Errorf("%d metrics without TLS", n)
	}
}
