package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
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
	require.NoError(t, err)
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
	patience.WaitSettled(t, func() string {
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
	check.Equal(t, tunnelsOf(b, "a"), 1, "tunnels through b")
	expectAnswer(t, c, "a", "a heard c: hello")
	r.heal("c")
	patience.WaitSettled(t, func() string {
		if a.Indirect("c") {
			return "c is not reached directly again"
		}
		return ""
	})
	expectAnswer(t, a, "c", "c heard a: hello")
	if _, admitted := c.reg.countConns(); admitted < 2 {
		t.Errorf("%d connections to c, want the tunnel's and a direct one", admitted)
	}
	if len(a.Tunnelled()) != 0 {
		t.Errorf("through others: %v", a.Tunnelled())
	}
}

// tunnelsOf is how many tunnels a member has through p.
func tunnelsOf(p *Port, id node.ID) int {
	p.tunnels.mu.Lock()
	defer p.tunnels.mu.Unlock()
	return p.tunnels.taken[id]
}

// A tunnel ends when a certificate of its two ends is revoked, wherever.
func TestTunnel_Revoked(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ at, whose node.ID }{{"a", "c"}, {"b", "a"}, {"b", "c"}, {"c", "a"}} {
		t.Run(string(test.at+" revokes "+test.whose), func(t *testing.T) {
			t.Parallel()
			a, b, c, _ := cutMesh(t, nil)
			expectAnswer(t, a, "c", "c heard a: hello")
			ports := map[node.ID]*Port{"a": a, "b": b, "c": c}
			if ports[test.at].Revoke(ports[test.whose].cfg.Identity.Fingerprint()) == 0 {
				t.Fatal("nothing was cut")
			}
			patience.WaitSettled(t, func() string {
				if tunnelsOf(b, "a") != 0 {
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
		patience.WaitNil(t, func() error { // busy: the tunnel before it is not released yet
			c, err := a.askTunnel(t.Context(), "b", id)
			if err == nil {
				_ = Cut(c)
			}
			if !errors.Is(err, want) {
				return fmt.Errorf("a tunnel to %s: %w, want %w", id, err, want)
			}
			return nil
		})
	}
	var first *tls.Conn
	patience.WaitNil(t, func() (err error) {
		first, err = a.askTunnel(t.Context(), "b", "c")
		return err
	})
	defer func() { _ = Cut(first) }()
	if c, err := a.askTunnel(t.Context(), "b", "c"); !errors.Is(err, ErrBusy) {
		if err == nil {
			_ = Cut(c)
		}
		t.Errorf("a second one where one may be: %v, want %v", err, ErrBusy)
	}
	_ = Cut(first)
	patience.WaitSettled(t, func() string {
		c, err := a.askTunnel(t.Context(), "b", "c")
		if err != nil {
			return err.Error()
		}
		_ = Cut(c)
		return ""
	})
	b.Suspect("c")                     // b has found out by itself
	patience.WaitNil(t, func() error { // the tunnel before may still have its place
		c, err := a.askTunnel(t.Context(), "b", "c")
		if err == nil {
			_ = Cut(c) // b has found out that it does reach c
		} else if !errors.Is(err, errTunnelUnreachable) {
			return fmt.Errorf("a tunnel to whom b does not reach: %w", err)
		}
		return nil
	})
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
	require.NoError(t, c.Close())
	if _, err := asked(t.Context(), a, "c", "hello"); err == nil {
		t.Fatal("a closed port answers")
	}
	if a.Indirect("c") || tunnelsOf(b, "a") != 0 {
		t.Error("a asks others for a member that does not run")
	}
}

// A member says itself where it is. Another one connects to that address for others only if the member answers there.
func TestTunnel_OtherService(t *testing.T) {
	t.Parallel()
	a, b, _, _ := cutMesh(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var greeting sync.WaitGroup
	defer greeting.Wait()
	defer ln.Close()
	greeting.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail"))
			_ = c.Close()
		}
	})
	m := &mesh{t: t, book: b.cfg.Roster.(*Book), rev: 1000}
	m.add(node.Entry{ID: "x", Addr: ln.Addr().(*net.TCPAddr).AddrPort(), Fingerprint: identity(t, "x").Fingerprint()})
	if c, err := a.askTunnel(t.Context(), "b", "x"); !errors.Is(err, errTunnelUnreachable) {
		if err == nil {
			_ = Cut(c)
		}
		t.Errorf("a tunnel to another service: %v", err)
	}
}

// What keeps a connection for good makes no tunnel: it would not notice that there is a direct way again.
func TestTunnel_DirectTransport(t *testing.T) {
	t.Parallel()
	a, b, _, _ := cutMesh(t, nil)
	a.Suspect("c")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://c/", nil)
	require.NoError(t, err)
	if res, err := a.client.Transport.(*retryTransport).next.(*wayTransport).direct.RoundTrip(req); err == nil {
		_ = res.Body.Close()
		t.Error("it has reached a member that is not reached directly")
	}
	check.Equal(t, tunnelsOf(b, "a"), 0, "it has made a tunnel")
}

// A connection of raft that is made through another member while the direct way comes back is not kept.
func TestTunnel_Raft(t *testing.T) {
	t.Parallel()
	a, b, c, r := cutMesh(t, nil)
	echo(t, c, ProtoRaft)
	a.Suspect("c")
	through := dial(t, a, "c", ProtoRaft)
	if err := works(through); err != nil || tunnelsOf(b, "a") != 1 {
		t.Fatalf("%d tunnels: %v", tunnelsOf(b, "a"), err)
	}
	r.heal("c")
	patience.WaitSettled(t, func() string {
		if tunnelsOf(b, "a") != 0 {
			return "the tunnel is open"
		}
		return ""
	})
	if works(through) == nil {
		t.Error("the connection through b still works")
	}
}

// Many requests that begin at the same moment share what one of them makes.
func TestTunnel_Herd(t *testing.T) {
	t.Parallel()
	a, b, _, _ := cutMesh(t, func(cfg *Config) { cfg.Limits.Handshake = testTimeout })
	a.Suspect("c")
	var herd sync.WaitGroup
	for range 60 {
		herd.Go(func() {
			if _, err := asked(t.Context(), a, "c", "hello"); err != nil {
				t.Error(err)
			}
		})
	}
	herd.Wait()
	if n := tunnelsOf(b, "a"); n == 0 || n > 3 {
		t.Errorf("%d tunnels for 60 requests", n)
	}
}

// A caller without patience does not make others go another way: the next attempt decides.
func TestTunnel_Impatient(t *testing.T) {
	t.Parallel()
	a, b, _, r := cutMesh(t, nil)
	r.heal("c")
	ctx, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	if c, err := a.Dial(ctx, "c", ProtoHTTP); err == nil {
		_ = Cut(c)
		t.Fatal("it had no time")
	}
	patience.WaitSettled(t, func() string {
		a.ways.mu.Lock()
		defer a.ways.mu.Unlock()
		if d := a.ways.to["c"]; d != nil && d.state != direct {
			return "nobody has found that c is reached directly"
		}
		return ""
	})
	expectAnswer(t, a, "c", "c heard a: hello")
	check.Equal(t, tunnelsOf(b, "a"), 0, "there is a tunnel")
}

// A dial that its caller gives up says nothing about the way.
func TestTunnel_GivenUp(t *testing.T) {
	t.Parallel()
	a, _, _, _ := cutMesh(t, nil)
	a.Suspect("c")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := a.Dial(ctx, "c", ProtoHTTP); err == nil {
		_ = Cut(c)
		t.Fatal("it was given up before it began")
	}
	if !a.Indirect("c") {
		t.Error("c counts as reached directly")
	}
}

// Where short packets pass and long ones do not, handshakes say nothing. Requests go through others all the same.
func TestTunnel_LongPackets(t *testing.T) {
	t.Parallel()
	a, _, c, r := cutMesh(t, nil)
	r.mu.Lock()
	r.hole["c"] = swallowsAfter(t, c.Addr(), 8<<10)
	r.mu.Unlock()
	long := strings.Repeat("x", 64<<10)
	row := 0
	patience.WaitSettled(t, func() string {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := asked(ctx, a, "c", long); err != nil {
			row = 0
			a.Suspect("c") // as a link does whose peer says nothing
			return err.Error()
		}
		if row++; row < 20 {
			return "answered, but not often enough in a row"
		}
		return ""
	})
}

// swallowsAfter passes so many bytes of each connection on to an address, and no more. It returns where it listens.
func swallowsAfter(t *testing.T, to netip.AddrPort, most int64) netip.AddrPort {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer near.Close()
				far, err := net.Dial("tcp", to.String())
				if err != nil {
					return
				}
				defer far.Close()
				wg.Go(func() { _, _ = io.Copy(near, far) })
				if _, err := io.CopyN(far, near, most); err == nil {
					<-ctx.Done()
				}
			})
		}
	})
	t.Cleanup(func() { cancel(); _ = ln.Close(); wg.Wait() })
	return ln.Addr().(*net.TCPAddr).AddrPort()
}

// Who dies behind a cut is not said to be reached through others.
func TestTunnel_PeerDies(t *testing.T) {
	t.Parallel()
	a, _, c, _ := cutMesh(t, nil)
	expectAnswer(t, a, "c", "c heard a: hello")
	require.NoError(t, c.Close())
	patience.WaitSettled(t, func() string {
		if through := a.Tunnelled(); len(through) > 0 {
			return fmt.Sprint("through others: ", through)
		}
		return ""
	})
}

// What is known of a way to a member changes with what is found of it.
func TestWays(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	began := time.Now()
	w := &ways{to: map[node.ID]*way{}}
	d := w.wayTo("m")
	for i, step := range []struct {
		after  time.Duration
		begin  state         // what it is before; direct: as it was
		proof  time.Duration // with indirect
		err    error         // of an attempt to reach it directly
		over   bool
		again  bool
		tunnel bool // one is used before
		state  state
	}{
		{begin: suspected, err: nil, over: true, state: direct},
		{begin: suspected, err: context.DeadlineExceeded, state: indirect},
		{err: context.DeadlineExceeded, tunnel: true, state: indirect},
		{err: nil, over: true, again: true, state: direct},
		{begin: indirect, proof: minProof, err: nil, state: indirect, after: time.Minute},
		{err: nil, state: indirect, after: time.Minute + minProof/2},
		{err: syscall.EHOSTUNREACH, state: indirect, after: time.Minute + minProof},
		{err: nil, state: indirect, after: 2 * time.Minute},
		{err: nil, over: true, state: direct, after: 2*time.Minute + minProof},
		{begin: indirect, err: refused, over: true, state: direct, after: 3 * time.Minute},
		{begin: indirect, err: ErrUnknownNode, tunnel: true, over: true, state: direct, after: 4 * time.Minute},
	} {
		if step.begin != direct {
			d.state, d.proof = step.begin, step.proof
		}
		if step.tunnel && !w.noteUsed("m") {
			t.Errorf("step %d: not the first tunnel", i)
		}
		over, again := w.noteDirect("m", step.err, began.Add(step.after))
		if over != step.over || again != step.again || d.state != step.state {
			t.Errorf("step %d: over %t, again %t, %d; want %t, %t, %d", i, over, again, d.state, step.over, step.again, step.state)
		}
	}
	check.Equal(t, len(w.to), 0, "it remembers a node that was removed")
}

// Nobody is asked for a tunnel time and again while a host is down.
func TestWays_AsksSeldom(t *testing.T) {
	w := &ways{to: map[node.ID]*way{}}
	now, times := time.Now(), 0
	for range 600 { // a minute
		if _, ok := w.mayAsk("m", now); ok {
			times++
			w.noteNoTunnel("m", now)
		}
		now = now.Add(100 * time.Millisecond)
	}
	if times < 10 || times > 20 {
		t.Errorf("asked %d times in a minute", times)
	}
	w.noteMade("m", "b")
	w.noteNoTunnel("m", now)
	through, ok := w.mayAsk("m", now.Add(minTunnelPause))
	if !ok || through != "b" {
		t.Errorf("after a tunnel was made: through %q, %t", through, ok)
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
