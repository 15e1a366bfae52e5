package peer

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// breakingConn is a connection that refuses what is written once it is told to: the other side has cut it.
type breakingConn struct {
	net.Conn
	refuse *atomic.Bool
}

func (c breakingConn) Write(b []byte) (int, error) {
	if c.refuse.Load() {
		return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.EPIPE)}
	}
	return c.Conn.Write(b)
}

// TestRetryTransport: a request goes over another connection when the one it began on was broken since its last use, and
// only when nothing can be done twice.
func TestRetryTransport(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		fresh  bool // the connection breaks at its first request
		cut    bool // the server has the whole request before
		want   bool
	}{
		"GET, not written":                {method: http.MethodGet, want: true},
		"GET, not answered":               {method: http.MethodGet, cut: true, want: true},
		"POST, not written":               {method: http.MethodPost, body: strings.NewReader("text"), want: true},
		"POST without body, not written":  {method: http.MethodPost, want: true},
		"POST, not answered":              {method: http.MethodPost, cut: true},
		"POST of a stream, not written":   {method: http.MethodPost, body: io.MultiReader(strings.NewReader("text"))},
		"GET on a connection just opened": {method: http.MethodGet, fresh: true, cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			var conn atomic.Pointer[net.Conn] // the last one
			var asked atomic.Int32
			cutAt := int32(0) // which request ends its connection
			switch {
			case c.cut && c.fresh:
				cutAt = 1
			case c.cut:
				cutAt = 2
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text, _ := io.ReadAll(r.Body)
				if asked.Add(1) == cutAt {
					_ = (*conn.Load()).Close()
					<-r.Context().Done()
					return
				}
				_, _ = w.Write(text)
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			var refuse atomic.Pointer[atomic.Bool] // of the last connection
			tr := &retryTransport{&http.Transport{
				Protocols: onlyHTTP2(), HTTP2: http2Config(),
				DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					raw, err := new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
					if err != nil {
						return nil, err
					}
					conn.Store(&raw)
					refuse.Store(new(atomic.Bool))
					secure := tls.Client(breakingConn{raw, refuse.Load()}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
					return secure, secure.HandshakeContext(ctx)
				},
			}}
			defer tr.CloseIdleConnections()
			ask := func(method string, body io.Reader) (string, error) {
				ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
				defer cancel()
				req, err := http.NewRequestWithContext(ctx, method, "https://b/", body)
				require.NoError(t, err)
				resp, err := tr.RoundTrip(req)
				if err != nil {
					return "", err
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				return string(text), err
			}
			if !c.fresh {
				if _, err := ask(http.MethodGet, nil); err != nil {
					t.Fatal(err)
				}
				refuse.Load().Store(!c.cut)
			}
			text, err := ask(c.method, c.body)
			if (err == nil) != c.want || c.want && c.body != nil && text != "text" {
				t.Errorf("answer %q, %v; want one: %t", text, err, c.want)
			}
			want := max(cutAt, 1) // as often as the server was asked before
			if c.want {
				want++
			}
			if n := asked.Load(); n != want {
				t.Errorf("the server was asked %d times, want %d", n, want)
			}
		})
	}
}

// TestRetryTransport_PingUnanswered: a request on which the peer works already is not sent again when something else, the
// answer to a ping, could not be written.
func TestRetryTransport_PingUnanswered(t *testing.T) {
	var refuse atomic.Bool
	var posts atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			posts.Add(1)
			refuse.Store(true)
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond}
	server.StartTLS()
	defer server.Close()
	tr := &retryTransport{&http.Transport{
		Protocols: onlyHTTP2(),
		DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			raw, err := new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
			if err != nil {
				return nil, err
			}
			refuse.Store(false)
			secure := tls.Client(breakingConn{raw, &refuse}, &tls.Config{InsecureSkipVerify: true,
				NextProtos: []string{"h2"}})
			return secure, secure.HandshakeContext(ctx)
		},
	}}
	defer tr.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(ctx, method, "https://b/", strings.NewReader("text"))
		require.NoError(t, err)
		resp, err := tr.RoundTrip(req)
		switch {
		case method == http.MethodGet && err != nil:
			t.Fatal(err)
		case method == http.MethodPost && (err == nil || ctx.Err() != nil):
			t.Errorf("a request whose connection has broken: %v, %v", resp, err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
	}
	if n := posts.Load(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

// TestRPC_ConnectionCut: a member that cuts the connections of another one, whose certificate was replaced say, does not
// make its next request fail.
func TestRPC_ConnectionCut(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", nil)
	b := m.member("b", func(c *Config) { c.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 20 {
		for range 2 {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://b/", nil)
			require.NoError(t, err)
			resp, err := a.HTTPClient().Do(req)
			require.NoError(t, err)
			_ = resp.Body.Close()
			b.Revoke(a.cfg.Identity.Fingerprint())
		}
	}
}
