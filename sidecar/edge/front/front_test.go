package front

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"reflect"
	"testing"
	"time"

	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
)

func TestIdentityOf(t *testing.T) {
	uri, err := url.Parse("spiffe://example/m")
	if err != nil {
		t.Fatal(err)
	}
	names := []pkix.AttributeTypeAndValue{{Type: commonName, Value: "m1"}, {Type: []int{2, 5, 4, 10}, Value: "org"},
		{Type: commonName, Value: "m2"}, {Type: commonName, Value: 7}}
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "m2", Names: names}, DNSNames: []string{"h"},
		EmailAddresses: []string{"m@h"}, URIs: []*url.URL{uri}, IPAddresses: []net.IP{net.IPv4zero}}
	for name, c := range map[string]struct {
		state tls.ConnectionState
		want  []string
	}{
		"no certificate": {},
		"not verified":   {state: tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}},
		"verified": {state: tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}},
			want: []string{"m1", "m2", "h", "m@h", "spiffe://example/m"}},
	} {
		got := identityOf(c.state)
		if !reflect.DeepEqual(got.Names, c.want) {
			t.Errorf("%s: %q, want %q", name, got.Names, c.want)
		}
		if got.Has("m2") != (len(c.want) > 0) || got.Has("org") || got.Has("") {
			t.Errorf("%s: Has", name)
		}
	}
}

func TestDivert_NotServed(t *testing.T) {
	for name, f := range map[string]*Front{
		"none": nil, "no configuration": New(Config{}), "nil": New(Config{TLS: func() *tls.Config { return nil }}),
	} {
		if f.Serves() {
			t.Errorf("%s: serves", name)
		}
		if _, err := f.Divert(nil, nil, netip.Addr{}); !errors.Is(err, ErrNotServed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// tcpPair is a connection on which each side can be seen.
func tcpPair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if client, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = ln.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	_ = client.SetDeadline(time.Now().Add(20 * time.Second))
	return server, client
}

// TestEnd ends the edge's side in each state of a connection; all of the front's goroutines end.
func TestEnd(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	for name, c := range map[string]struct {
		shakes, discard bool
	}{
		"before the handshake": {}, "afterwards": {shakes: true}, "for a bad peer": {shakes: true, discard: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := New(Config{TLS: func() *tls.Config { return ca.Server(tls.NoClientCert) }, CloseTimeout: 50 * time.Millisecond})
			server, client := tcpPair(t)
			l, err := f.Divert(server, nil, netip.Addr{})
			if err != nil {
				t.Fatal(err)
			}
			if c.shakes {
				if err := tls.Client(client, ca.Client("")).Handshake(); err != nil {
					t.Fatal(err)
				}
				_ = l.Edge().SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
				_, _ = l.Edge().Write(make([]byte, 64<<20)) // which is not read
			}
			_ = l.Edge().Close()
			l.End(c.discard)
			f.Wait()
		})
	}
}
