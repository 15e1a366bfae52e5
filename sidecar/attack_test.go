package sidecar

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/saltwire"
)

// A node that is broken or hostile cannot pass on what no node ever does: requests in clear, whose allow-lists go by an
// address that only it vouches for, and commands that no Salt has. Where sign-ins come, nothing else does.
func TestRelay_ForbiddenRequests(t *testing.T) {
	w := newWorld(t)
	for _, cmd := range []string{"_auth", "ping", "publish", "runner", "wheel", "mk_token"} {
		load, err := saltwire.AppendAny(nil, map[string]any{"cmd": cmd, "fun": "test.ping", "tgt": "*"}, saltwire.Wire)
		require.NoError(t, err)
		body := saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3,
			HasVersion: true})
		for _, signIn := range []bool{false, true} { // this _auth is none
			if got := w.take(t, &request{body: body, from: "b", signIn: signIn}); !bytes.Equal(got, saltwire.BadLoad()) {
				t.Errorf("%s from a peer, as a sign-in %t: %q", cmd, signIn, got)
			}
		}
	}
	for _, cmd := range []string{"run_func", "__init__", "publish", "_prep_auth_info"} {
		if w.send(t, w.request(t, map[string]any{"cmd": cmd}), "b") == nil {
			t.Errorf("%s from a peer: no answer", cmd)
		}
	}
	sealed := &request{body: w.request(t, map[string]any{"cmd": "_pillar"}), from: "b", signIn: true}
	check.EqualSlices(t, w.take(t, sealed), saltwire.BadLoad(), "a sealed request from a peer, as a sign-in")
	check.EqualSlices(t, w.send(t, w.signIn(), "b"), saltwire.BadLoad(), "a sign-in from a peer, as a sealed request")
	if len(w.atMaster) != 0 || w.signIns != 0 {
		t.Errorf("%d requests reached the master, %d the sign-in", len(w.atMaster), w.signIns)
	}
}

// A ping is echoed to anybody, so one that is larger than any of Salt's is not: a stranger who does not read the echo
// would have it kept.
func TestPing_Large(t *testing.T) {
	w := newWorld(t)
	ping := func(size int) []byte {
		load, err := saltwire.AppendAny(nil, map[string]any{"cmd": "ping", "x": make([]byte, size)}, saltwire.Wire)
		require.NoError(t, err)
		body := saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3,
			HasVersion: true})
		return w.send(t, body, "")
	}
	if got := len(ping(1 << 10)); got < 1<<10 {
		t.Errorf("a small one is answered with %d bytes", got)
	}
	if got := len(ping(relay.MaxSignIn)); got >= 1<<10 {
		t.Errorf("a large one is answered with %d bytes", got)
	}
}

// A peer's sign-in is checked as if it came from the network, and known as a peer's.
func TestSignIn_FromPeer(t *testing.T) {
	w := newWorld(t)
	for i, from := range []node.ID{"", "b"} {
		if got := w.take(t, &request{body: w.signIn(), from: from, signIn: from != ""}); string(got) != "signed in" {
			t.Errorf("from %q: %q", from, got)
		}
		if w.caughtUp != i+1 || w.relayed != (from != "") {
			t.Errorf("from %q: %d looks at the news, relayed %t", from, w.caughtUp, w.relayed)
		}
	}
}

// A minion that writes and writes while another node hangs is answered, the other nodes get their copies, and what
// waits for the one that hangs is bounded.
func TestCopies_BoundedForHungNode(t *testing.T) {
	w := newWorld(t)
	for range maxCopies {
		if !w.proxy.copies.takePlace("b", 1) {
			t.Fatal("no room from the beginning")
		}
	}
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_mine", "data": map[string]any{}}), "")) {
		t.Error("the minion is not answered")
	}
	w.proxy.wg.Wait()
	if w.atPeers["b"] != 0 || w.atPeers["c"] != 1 {
		t.Errorf("copies: %v", w.atPeers)
	}
	for range maxCopies {
		w.proxy.copies.freePlace("b", 1)
	}
	if len(w.proxy.copies.to) != 0 {
		t.Errorf("%d nodes are still counted", len(w.proxy.copies.to))
	}
}

func TestCopyRoomBytes(t *testing.T) {
	var r copyRoom
	for _, step := range []struct {
		to   node.ID
		size int
		want bool
	}{
		{"b", 2 * maxCopyBytes, true}, // whatever its size, one must be possible
		{"b", 0, false},
		{"c", maxCopyBytes / 2, true},
		{"c", maxCopyBytes / 2, true},
		{"c", 1, false},
	} {
		check.Equal(t, r.takePlace(step.to, step.size), step.want, step.size, "bytes to", step.to)
	}
	r.freePlace("c", maxCopyBytes/2)
	if !r.takePlace("c", 1) {
		t.Error("room is not given back")
	}
}

// What a node hands over is logged with the address that it says. Whatever it says, that it was this node stands in the
// log, and is counted.
func TestRelay_RefusalsLoggedPerNode(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t)
	w.proxy.handed.log = slog.New(slog.NewTextHandler(&log, nil))
	answers := 0
	to := relay.Hands{Reply: func([]byte) { answers++ }, Drop: func() { answers++ }, Pass: func(bool) { answers++ }}
	for range 3 {
		w.proxy.ServeRelayed(t.Context(), "b", netip.MustParseAddrPort("10.0.0.7:1"), []byte{0xc0}, to)
		w.proxy.ServeSignIn(t.Context(), "c", netip.AddrPort{}, []byte{0xc0}, to)
	}
	if answers != 6 {
		t.Errorf("%d of 6 were answered", answers)
	}
	for _, from := range []string{"b", "c"} {
		if n := strings.Count(log.String(), "handed over by a node refused\" node="+from); n != 1 {
			t.Errorf("%s is logged %d times:\n%s", from, n, log.String())
		}
		if n := testutil.ToFloat64(w.proxy.metrics.handed.WithLabelValues(from)); n != 3 {
			t.Errorf("%s: %v refusals", from, n)
		}
	}
	w.proxy.handed.noteRefusal("b", time.Now().Add(2*handedLogEvery))
	if n := strings.Count(log.String(), "node=b"); n != 2 {
		t.Errorf("b is logged %d times", n)
	}
	if n := len(w.proxy.handed.next); n != 1 { // c may have left the cluster since
		t.Errorf("%d nodes are remembered", n)
	}
}

// TestSignInOfAnySize: sign-ins go to the master as they came. Anybody may send one, and a list of millions that no
// Salt reads in it would take gigabytes of each of its workers.
func TestSignInOfAnySize(t *testing.T) {
	w := newWorld(t)
	env, err := saltwire.ParseEnvelope(w.signIn())
	require.NoError(t, err)
	stuffed := func(raw []byte, n int) []byte {
		raw = append([]byte{raw[0] + 1}, raw[1:]...) // one entry more
		return append(saltwire.AppendArrayHeader(saltwire.AppendRaw(raw, "x"), n), make([]byte, n)...)
	}
	inside := env
	for _, n := range []int{100, relay.MaxSignIn} {
		inside.Load = stuffed(env.Load, n)
		for where, body := range map[string][]byte{"load": saltwire.AppendEnvelope(nil, inside),
			"envelope": stuffed(w.signIn(), n)} {
			want := "signed in"
			if n == relay.MaxSignIn {
				want = string(saltwire.BadLoad())
			}
			if got := w.send(t, body, ""); string(got) != want {
				t.Errorf("%d bytes in its %s: answered %q, want %q", n, where, got, want)
			}
		}
	}
}

// TestRequest_KnownAndLinger wants only a request that was opened to count as its minion's, and one that waits for news
// before it is to take room.
func TestRequest_KnownAndLinger(t *testing.T) {
	for name, c := range map[string]struct {
		body   func(w *world) []byte
		known  string
		linger int
		full   bool
	}{
		"a minion's request": {body: func(w *world) []byte { return w.request(t, map[string]any{"cmd": "_pillar"}) },
			known: "web1"},
		"garbage under its name": {body: func(w *world) []byte { return garbage("web1") }, linger: 1},
		"a sign-in":              {body: func(w *world) []byte { w.forget(); return w.signIn() }, linger: 1},
		"one without room":       {body: func(w *world) []byte { w.forget(); return w.signIn() }, linger: 1, full: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			known, asked := "", 0
			reply := w.take(t, &request{
				body: c.body(w), to: &fakeResponder{known: func(m string) { known = m },
					linger: func() bool { asked++; return !c.full }},
			})
			if known != c.known || asked != c.linger || c.full && (reply != nil || w.signIns > 0) {
				t.Errorf("known as %q, asked %d times, answered %q", known, asked, reply)
			}
		})
	}
}

// garbage is a request that was sealed with no key.
func garbage(id string) []byte {
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncAES, Version: 3, HasVersion: true, ID: id,
		Load: make([]byte, 512)})
}
