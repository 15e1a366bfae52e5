package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

func TestProtocols(t *testing.T) {
	m := newMesh(t)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := FromContext(r.Context())
		if !ok || r.ProtoMajor != 2 {
			http.Error(w, "no id or not HTTP/2", http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, "hello "+id.String()+" from "+r.Host)
	})
	a, b := m.member("node-a", nil), m.member("node_b.example", func(c *Config) { c.Handler = handler })
	for _, proto := range []string{ProtoRaft, ProtoGossip} {
		echo(t, b, proto)
		c := dial(t, a, b.ID(), proto)
		check.NoError(t, works(c), proto)
		if id, ok := Remote(c); !ok || id != b.ID() {
			t.Errorf("%s: Remote = %q, %v", proto, id, ok)
		}
	}
	for range 2 { // the second one uses the same connection
		res, err := a.HTTPClient().Get("https://node_b.example/path")
		require.NoError(t, err)
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		check.Equal(t, string(body), "hello node-a from node_b.example", "peer RPC answered")
	}
	if n := len(b.reg.admittedCerts()); n != 1 {
		t.Errorf("connections of %d certificates, want 1", n)
	}
}

func TestRPCToStrangers(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", nil)
	for url, want := range map[string]error{
		"https://nobody/": ErrUnknownNode, "https://NOT_AN_ID-/": node.ErrInvalidID,
		"https://192.0.2.1:4520/": ErrUnknownNode,
	} {
		res, err := a.HTTPClient().Get(url)
		if err == nil {
			_ = res.Body.Close()
		}
		check.ErrorIs(t, err, want, "GET", url)
	}
	if res, err := a.HTTPClient().Get("http://a/"); err == nil {
		_ = res.Body.Close()
		t.Error("a request without TLS was sent")
	}
}

func TestStrangersAreRefused(t *testing.T) {
	m := newMesh(t)
	p := m.member("member", nil)
	echo(t, p, ProtoRaft)
	echo(t, p, ProtoGossip)
	stranger := identity(t, "stranger")
	namesake := identity(t, "member") // the right name, another key
	for name, cfg := range map[string]*tls.Config{
		"raft":           {Certificates: []tls.Certificate{stranger.currentCert().cert}, NextProtos: []string{ProtoRaft}},
		"gossip":         {Certificates: []tls.Certificate{stranger.currentCert().cert}, NextProtos: []string{ProtoGossip}},
		"rpc":            {Certificates: []tls.Certificate{stranger.currentCert().cert}, NextProtos: []string{ProtoHTTP}},
		"namesake":       {Certificates: []tls.Certificate{namesake.currentCert().cert}, NextProtos: []string{ProtoRaft}},
		"no certificate": {NextProtos: []string{ProtoRaft}},
		"join without":   {NextProtos: []string{ProtoJoin}},
		"tls 1.2": {Certificates: []tls.Certificate{p.cfg.Identity.currentCert().cert}, NextProtos: []string{ProtoRaft},
			MaxVersion: tls.VersionTLS12},
		"no alpn":      {Certificates: []tls.Certificate{p.cfg.Identity.currentCert().cert}},
		"unknown alpn": {Certificates: []tls.Certificate{p.cfg.Identity.currentCert().cert}, NextProtos: []string{"http/1.1"}},
		"two of them":  {Certificates: []tls.Certificate{twice(p.cfg.Identity)}, NextProtos: []string{ProtoRaft}},
		"older protocols": {Certificates: []tls.Certificate{p.cfg.Identity.currentCert().cert},
			NextProtos: []string{"scd-raft/0"}},
	} {
		if _, err := rawDial(t, p, cfg); err == nil || errors.Is(err, io.EOF) || isTimeout(err) {
			t.Errorf("%s: %v, want a TLS alert", name, err)
		}
	}
	if _, admitted := p.reg.countConns(); admitted != 0 {
		t.Errorf("%d strangers were admitted", admitted)
	}
}

func twice(i *Identity) tls.Certificate {
	c := i.currentCert().cert
	c.Certificate = [][]byte{c.Certificate[0], c.Certificate[0]}
	return c
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

func TestNoTickets(t *testing.T) {
	m := newMesh(t)
	p := m.member("a", nil)
	echo(t, p, ProtoRaft)
	cache := &countingCache{}
	cfg := &tls.Config{
		Certificates: []tls.Certificate{p.cfg.Identity.currentCert().cert}, NextProtos: []string{ProtoRaft},
		ClientSessionCache: cache,
	}
	if _, err := rawDial(t, p, cfg); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, cache.puts, 0, "the port hands out resumption tickets")
}

type countingCache struct{ puts int }

func (c *countingCache) Get(string) (*tls.ClientSessionState, bool) { return nil, false }
func (c *countingCache) Put(_ string, s *tls.ClientSessionState)    { c.puts++ }

func TestDialChecksTheNode(t *testing.T) {
	m := newMesh(t)
	a, b, c := m.member("a", nil), m.member("b", nil), m.member("c", nil)
	echo(t, b, ProtoRaft)
	echo(t, c, ProtoRaft)
	// The roster has c's address for b: both are members, but it is not the one we mean.
	m.change(func([]node.Entry) []node.Entry {
		wrong := entryOf(b)
		wrong.Addr = c.Advertise()
		return []node.Entry{entryOf(a), wrong, entryOf(c)}
	})
	if _, err := a.Dial(context.Background(), "b", ProtoRaft); !errors.Is(err, ErrWrongNode) {
		t.Errorf("dial b at c's address: %v, want ErrWrongNode", err)
	}
	if _, err := a.Dial(context.Background(), "nobody", ProtoRaft); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("dial nobody: %v, want ErrUnknownNode", err)
	}
}

func TestEmptyRosterRefusesAll(t *testing.T) {
	m := newMesh(t)
	a, b := m.port("a", nil), m.port("b", func(c *Config) { c.Join = &admission{} })
	echo(t, b, ProtoRaft)
	if _, err := a.Dial(context.Background(), "b", ProtoRaft); !errors.Is(err, ErrUnknownNode) {
		t.Errorf("dial: %v, want ErrUnknownNode", err)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{a.cfg.Identity.currentCert().cert}, NextProtos: []string{ProtoRaft}}
	if _, err := rawDial(t, b, cfg); err == nil || isTimeout(err) {
		t.Errorf("dial without a roster: %v, want a TLS alert", err)
	}
	if _, err := Join(context.Background(), joinConfig(t, b, "joiner")); !errors.Is(err, ErrNotReady) ||
		!JoinRetryable(err) {
		t.Errorf("join: %v, want ErrNotReady", err)
	}
}

func TestDial_NoListener(t *testing.T) {
	m := newMesh(t)
	a, b := m.member("a", nil), m.member("b", nil)
	if _, err := a.Dial(context.Background(), "b", ProtoRaft); !errors.Is(err, ErrBusy) {
		t.Errorf("dial without a listener: %v, want ErrBusy", err)
	}
	l, err := b.Listener(ProtoRaft)
	require.NoError(t, err)
	if _, err := b.Listener(ProtoRaft); err == nil {
		t.Error("a second listener for the same protocol was given out")
	}
	require.NoError(t, l.Close())
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v, want net.ErrClosed", err)
	}
	echo(t, b, ProtoRaft)
	check.NoError(t, works(dial(t, a, "b", ProtoRaft)), "after listening again")
}

// Connections that one protocol does not accept do not delay another protocol.
func TestDial_QueueFull(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", func(c *Config) { c.Limits.Handshake = testTimeout })
	b := m.member("b", func(c *Config) { c.Limits.Queue, c.Limits.Handshake = 2, 3*time.Second })
	if _, err := b.Listener(ProtoRaft); err != nil { // nobody calls Accept
		t.Fatal(err)
	}
	echo(t, b, ProtoGossip)
	for range 2 {
		dial(t, a, "b", ProtoRaft) // fills the queue
	}
	full := make(chan error, 1)
	go func() {
		c, err := a.Dial(context.Background(), "b", ProtoRaft)
		if err == nil {
			_ = c.Close()
		}
		full <- err
	}()
	check.NoError(t, works(dial(t, a, "b", ProtoGossip)), "gossip beside a stuck raft consumer")
	check.ErrorIs(t, <-full, ErrBusy, "dial of a full queue")
}

func TestTooManyConnections(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", nil)
	b := m.member("b", func(c *Config) { c.Limits.ConnsPerNode = 3 })
	echo(t, b, ProtoRaft)
	var open []net.Conn
	for range 3 {
		open = append(open, dial(t, a, "b", ProtoRaft))
	}
	if c, err := a.Dial(context.Background(), "b", ProtoRaft); err == nil {
		_ = c.Close()
		t.Fatal("a fourth connection was admitted")
	}
	_ = open[0].Close()
	patience.WaitSettled(t, func() string {
		c, err := a.Dial(context.Background(), "b", ProtoRaft)
		if err != nil {
			return "no place after one was closed: " + err.Error()
		}
		_ = c.Close()
		return ""
	})
}

func TestCloseEndsEverything(t *testing.T) {
	m := newMesh(t)
	a, b := m.member("a", nil), m.member("b", nil)
	echo(t, b, ProtoRaft)
	c := dial(t, a, "b", ProtoRaft)
	require.NoError(t, b.Close())
	if err := works(c); err == nil {
		t.Error("a connection survived Close")
	}
	select {
	case <-b.Done():
	default:
		t.Error("Done is not closed")
	}
	if _, err := b.Dial(context.Background(), "a", ProtoRaft); !errors.Is(err, ErrClosed) {
		t.Errorf("dial after Close: %v, want ErrClosed", err)
	}
	if all, _ := b.reg.countConns(); all != 0 {
		t.Errorf("%d connections are still known", all)
	}
}

func TestNewPortValidates(t *testing.T) {
	_, err := NewPort(Config{Listen: "nonsense"})
	if err == nil || !strings.Contains(err.Error(), "identity") || !strings.Contains(err.Error(), "roster") {
		t.Errorf("NewPort: %v, want all findings", err)
	}
	p, err := NewPort(Config{Listen: "127.0.0.1:0", Identity: identity(t, "a"), Roster: newMesh(t).book})
	require.NoError(t, err)
	check.NoError(t, p.Close(), "Close without Open")
}
