package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
)

// cutRoster is a roster as a node sees the network: an address from which nothing comes back stands for each member that
// it does not reach.
type cutRoster struct {
	Roster
	mu   sync.Mutex
	hole map[node.ID]netip.AddrPort
}

func (r *cutRoster) Lookup(id node.ID) (node.Entry, bool) {
	e, ok := r.Roster.Lookup(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	if hole, cut := r.hole[id]; cut {
		e.Addr = hole
	}
	return e, ok
}

func (r *cutRoster) cut(t *testing.T, id node.ID) {
	ln, err := net.Listen("tcp", "127.0.0.1:0") // connections are made by the kernel and wait there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hole[id] = ln.Addr().(*net.TCPAddr).AddrPort()
}

func (r *cutRoster) heal(id node.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.hole, id)
}

// cutMesh is three members; the first reaches the third through the second only.
func cutMesh(t *testing.T, edit func(*Config)) (a, b, c *Port, r *cutRoster) {
	m := newMesh(t)
	r = &cutRoster{Roster: m.book, hole: map[node.ID]netip.AddrPort{}}
	quick := func(cfg *Config) {
		cfg.Limits.Handshake = time.Second
		cfg.Handler = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			id, _ := FromContext(req.Context())
			body, _ := io.ReadAll(req.Body)
			_, _ = io.WriteString(w, string(cfg.Identity.ID())+" heard "+string(id)+": "+string(body))
		})
		if edit != nil {
			edit(cfg)
		}
	}
	a = m.member("a", func(cfg *Config) { quick(cfg); cfg.Roster = r })
	b, c = m.member("b", quick), m.member("c", quick)
	r.cut(t, "c")
	return a, b, c, r
}

// asked is what a member answers to a request.
func asked(ctx context.Context, p *Port, id node.ID, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(id)+"/", bytes.NewBufferString(body))
	if err != nil {
		return "", err
	}
	res, err := p.HTTPClient().Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	return string(answer), err
}

func expectAnswer(t *testing.T, p *Port, id node.ID, want string) {
	t.Helper()
	eventually(t, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		got, err := asked(ctx, p, id, "hello")
		switch {
		case err != nil:
			return err.Error()
		case got != want:
			t.Fatalf("%q, want %q", got, want)
		}
		return ""
	})
}

// The member at the other end sees who asks, not the one in between.
func TestTunnel(t *testing.T) {
	t.Parallel()
	a, b, c, r := cutMesh(t, nil)
	expectAnswer(t, a, "b", "b heard a: hello")
	expectAnswer(t, a, "c", "c heard a: hello")
	if !a.Indirect("c") || a.Indirect("b") || !slices.Equal(a.Tunnelled(), []node.ID{"c"}) {
		t.Errorf("through others: %v", a.Tunnelled())
	}
	if n := b.tunnels.taken["a"]; n != 1 {
		t.Errorf("%d tunnels through b, want 1", n)
	}
	expectAnswer(t, c, "a", "a heard c: hello")
	r.heal("c")
	eventually(t, func() string {
		if a.Indirect("c") {
			return "c is not reached directly again"
		}
		return ""
	})
	expectAnswer(t, a, "c", "c heard a: hello")
	if _, admitted := c.reg.countConns(); admitted < 2 {
		t.Errorf("%d connections to c, want the tunnel's and a direct one", admitted)
	}
}

// A connection within a tunnel ends when the certificate at any of its ends is revoked, or the one that asked for it is
// revoked in between.
func TestTunnel_Revoked(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"a", "b", "c"} {
		t.Run(where, func(t *testing.T) {
			a, b, c, _ := cutMesh(t, nil)
			expectAnswer(t, a, "c", "c heard a: hello")
			ports := map[string]*Port{"a": a, "b": b, "c": c}
			whose := a
			if where == "a" {
				whose = c
			}
			if ports[where].Revoke(whose.cfg.Identity.Fingerprint()) == 0 {
				t.Fatal("nothing was cut")
			}
			eventually(t, func() string {
				b.tunnels.mu.Lock()
				defer b.tunnels.mu.Unlock()
				if b.tunnels.taken["a"] != 0 {
					return "the tunnel is open"
				}
				return ""
			})
		})
	}
}

// A tunnel leads to members only, and not back.
func TestTunnel_Targets(t *testing.T) {
	t.Parallel()
	a, b, _, _ := cutMesh(t, func(cfg *Config) {
		if cfg.Identity.ID() == "b" {
			cfg.Limits.Tunnels = 1
		}
	})
	for id, want := range map[node.ID]error{"nobody": ErrUnknownNode, "a": ErrUnknownNode, "b": ErrUnknownNode} {
		c, err := a.askTunnel(t.Context(), "b", id)
		if err == nil {
			_ = Cut(c)
		}
		if !errors.Is(err, want) {
			t.Errorf("a tunnel to %s: %v, want %v", id, err, want)
		}
	}
	first, err := a.askTunnel(t.Context(), "b", "c")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = Cut(first) }()
	if c, err := a.askTunnel(t.Context(), "b", "c"); !errors.Is(err, ErrBusy) {
		if err == nil {
			_ = Cut(c)
		}
		t.Errorf("a second one where one may be: %v, want %v", err, ErrBusy)
	}
	_ = Cut(first)
	eventually(t, func() string {
		c, err := a.askTunnel(t.Context(), "b", "c")
		if err != nil {
			return err.Error()
		}
		_ = Cut(c)
		return ""
	})
	b.Suspect("c") // b has found out by itself
	if c, err := a.askTunnel(t.Context(), "b", "c"); err == nil {
		_ = Cut(c) // b has found out that it does reach c
	} else if !errors.Is(err, errTunnelUnreachable) {
		t.Errorf("a tunnel to whom b does not reach: %v", err)
	}
}

// Nobody who is not a member gets a tunnel.
func TestTunnel_Strangers(t *testing.T) {
	t.Parallel()
	_, b, _, _ := cutMesh(t, nil)
	m := newMesh(t)
	stranger := m.member("a", nil)
	m.add(entryOf(b))
	if c, err := stranger.askTunnel(t.Context(), "b", "c"); err == nil {
		_ = Cut(c)
		t.Error("a stranger has a tunnel")
	}
}

// A member that is refused by its host is not looked for through others: it does not run.
func TestTunnel_NotRunning(t *testing.T) {
	t.Parallel()
	a, b, c, r := cutMesh(t, nil)
	r.heal("c")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := asked(t.Context(), a, "c", "hello"); err == nil {
		t.Fatal("a closed port answers")
	}
	if a.Indirect("c") || b.tunnels.taken["a"] != 0 {
		t.Error("a asks others for a member that does not run")
	}
}

// FuzzTunnelTarget: whatever a member writes first is a node id or an error, and is read with the bytes it announces.
func FuzzTunnelTarget(f *testing.F) {
	f.Add(appendTunnelTarget(nil, "m1"))
	f.Add([]byte{0})
	f.Add([]byte{255, 'a'})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		id, err := readTunnelTarget(r)
		if err != nil {
			return
		}
		if again := appendTunnelTarget(nil, id); !bytes.HasPrefix(b, again) || r.Len() != len(b)-len(again) {
			t.Fatalf("%q is read from %q", id, b)
		}
	})
}
