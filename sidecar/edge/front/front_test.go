package front

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"

	"golang.org/x/sys/unix"
)

func TestIdentityOf(t *testing.T) {
	uri, err := url.Parse("spiffe://example/m")
	require.NoError(t, err)
	names := []pkix.AttributeTypeAndValue{{Type: commonName, Value: "m1"}, {Type: []int{2, 5, 4, 10}, Value: "org"},
		{Type: commonName, Value: "m2"}, {Type: commonName, Value: 7}}
	cert := &x509.Certificate{Subject: pkix.Name{CommonName: "m2", Names: names}, DNSNames: []string{"h"},
		EmailAddresses: []string{"m@h"}, URIs: []*url.URL{uri}, IPAddresses: []net.IP{net.IPv4zero}}
	for name, c := range map[string]struct {
		state tls.ConnectionState
		want  []string
	}{
		"no certificate": {},
		"one": {state: tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}},
			want: []string{"m1", "m2", "h", "m@h", "spiffe://example/m"}},
	} {
		got := identityOf(c.state)
		check.DeepEqual(t, got.Names, c.want, name)
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
	require.NoError(t, err)
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
			require.NoError(t, err)
			if c.shakes {
				require.NoError(t, tls.Client(client, ca.Client("")).Handshake())
				awaitReady(t, l)
				if _, err := l.Write(make([]byte, 64<<20)); err != syscall.EAGAIN { // which is not read
					t.Fatal(err)
				}
			}
			l.End(c.discard)
			f.Wait()
		})
	}
}

// newLink is a front with one link, whose hands are shaken, and what its peer has.
func newLink(t *testing.T) (f *Front, l *Link, inside *tls.Conn) {
	t.Helper()
	ca := tlstest.NewCA(t, "authority")
	f = New(Config{TLS: func() *tls.Config { return ca.Server(tls.NoClientCert) }})
	server, client := tcpPair(t)
	l, err := f.Divert(server, nil, netip.Addr{})
	require.NoError(t, err)
	inside = tls.Client(client, ca.Client(""))
	require.NoError(t, inside.Handshake())
	awaitReady(t, l)
	return f, l, inside
}

// awaitReady waits until hands are shaken.
func awaitReady(t *testing.T, l *Link) {
	t.Helper()
	patience.WaitFor(t, "hands are shaken", func() bool {
		_, err := l.Write()
		return err == nil
	})
}

// TestLink_Write writes more than sockets hold, in buffers of many sizes, to a peer that reads nothing until the write
// deadline has passed. Then it gets all of it, in order, and an end that TLS announces.
func TestLink_Write(t *testing.T) {
	f, l, inside := newLink(t)
	all := make([]byte, 16<<20)
	for i := range all {
		all[i] = byte(i>>8 ^ i)
	}
	rest := all
	write := func() bool {
		for len(rest) > 0 {
			var bufs [][]byte
			for left := rest; len(left) > 0 && len(bufs) < 5; {
				size := min(1<<(3*len(bufs)+4), len(left)) // 16 bytes to 64 KiB
				bufs, left = append(bufs, left[:size]), left[size:]
			}
			n, err := l.Write(bufs...)
			rest = rest[n:]
			switch {
			case err == syscall.EAGAIN:
				return false
			case err != nil:
				t.Error(err)
				return true
			}
		}
		return true
	}
	_ = l.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	if err := l.WriteWhenReady(write); err != os.ErrDeadlineExceeded || len(rest) == 0 {
		t.Fatalf("%v, with %d bytes left", err, len(rest))
	}
	_ = l.SetWriteDeadline(time.Time{})
	got := make(chan []byte)
	go func() {
		b, err := io.ReadAll(inside)
		check.NoError(t, err)
		got <- b
	}()
	require.NoError(t, l.WriteWhenReady(write))
	l.End(false)
	check.EqualSlices(t, <-got, all, "not what was written")
	if _, err := l.Write([]byte("more")); err != net.ErrClosed {
		t.Errorf("after the end: %v", err)
	}
	f.Wait()
}

// TestLink_TwoWriters: of two that wait for room the second one ends, too, when the first has written everything.
func TestLink_TwoWriters(t *testing.T) {
	f, l, inside := newLink(t)
	var mu sync.Mutex // as Conn.Mu
	left, asked := 16<<20, 0
	write := func() bool {
		mu.Lock()
		defer mu.Unlock()
		asked++
		n, err := l.Write(make([]byte, left))
		left -= n
		return err == nil
	}
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- l.WriteWhenReady(write) }()
	}
	patience.WaitFor(t, "both wait", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked >= 2
	})
	go func() { _, _ = io.Copy(io.Discard, inside) }()
	for range 2 {
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(20 * time.Second):
			t.Fatal("one still waits")
		}
	}
	l.End(true)
	f.Wait()
}

// TestOutput_Bounded: what crypto/tls answers a peer that reads nothing costs no more than maxOutput.
func TestOutput_Bounded(t *testing.T) {
	f, l, _ := newLink(t)
	var err error
	for n := 0; err == nil && n < 1<<30; n += recordRoom {
		_, err = l.out.write(make([]byte, recordRoom)) // as for a key update
	}
	if err != errOutput {
		t.Error(err)
	}
	if _, err := l.Write([]byte("more")); err != errOutput {
		t.Errorf("the edge is told %v", err)
	}
	l.End(true)
	f.Wait()
}

// TestLink_WriteLeavesNothing: the kernel waits for no record after the last one. (The race detector's Send does not ask
// it to wait for any.)
func TestLink_WriteLeavesNothing(t *testing.T) {
	f, l, _ := newLink(t)
	for _, size := range []int{1, recordRoom, recordRoom + 1, 2 * recordRoom, 2*recordRoom + 100} {
		_, err := l.Write(make([]byte, size/2), make([]byte, size-size/2))
		require.NoError(t, err)
		_ = l.out.raw.Control(func(fd uintptr) {
			unsent, err := unix.IoctlGetInt(int(fd), unix.SIOCOUTQNSD)
			if err != nil || unsent != 0 {
				t.Errorf("%d bytes: %d are not sent: %v", size, unsent, err)
			}
		})
	}
	l.End(true)
	f.Wait()
}
