package front

import (
	"context"
	"crypto"
	"crypto/tls"
	"io"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
)

// TestTurns_Networks wants networks to take turns, however many wait in one, and those that give up to be passed over.
func TestTurns_Networks(t *testing.T) {
	turns := NewTurns(1)
	require.NoError(t, turns.takeTurn(t.Context(), netip.Addr{}, false))
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	got := make(chan string, 10)
	var wg sync.WaitGroup
	waiting := 0
	for _, w := range []struct {
		name    string
		network netip.Addr
		gone    bool
		again   bool
	}{{name: "a1", network: a}, {name: "a2", network: a, gone: true}, {name: "b1", network: b}, {name: "a3", network: a},
		{name: "a4", network: a}, {name: "b2", network: b}, {name: "a5", network: a, again: true},
		{name: "a6", network: a, again: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wg.Go(func() {
			if turns.takeTurn(ctx, w.network, w.again) == nil {
				got <- w.name
				turns.giveBack()
			}
		})
		waiting++
		patience.WaitFor(t, w.name+" waits", func() bool { return turns.countWaiting() == waiting })
		if w.gone {
			cancel()
			waiting--
			patience.WaitFor(t, w.name+" has gone", func() bool { return turns.countWaiting() == waiting })
		}
	}
	turns.giveBack()
	wg.Wait()
	close(got)
	var order []string
	for name := range got {
		order = append(order, name)
	}
	if want := []string{"a5", "b1", "a6", "b2", "a1", "a3", "a4"}; !slices.Equal(order, want) {
		t.Errorf("in the order %v, not %v", order, want)
	}
	if turns.free != 1 || len(turns.waiting)+len(turns.order) != 0 {
		t.Errorf("afterwards %d are free, %d networks wait", turns.free, len(turns.order))
	}
}

// signer is a key that signs when it may.
type signer struct {
	crypto.Signer
	begun chan struct{}
	may   chan struct{}
}

func (s signer) Sign(r io.Reader, digest []byte, o crypto.SignerOpts) ([]byte, error) {
	s.begun <- struct{}{}
	<-s.may
	return s.Signer.Sign(r, digest, o)
}

// TestHandshakes_TakeTurns wants handshakes beyond the number of turns to wait before they sign, also those in which the
// server has to ask for another hello, and one whose peer has gone not to keep a turn.
func TestHandshakes_TakeTurns(t *testing.T) {
	ca := tlstest.NewCA(t, "authority")
	cfg := ca.Server(tls.NoClientCert)
	cfg.CurvePreferences = []tls.CurveID{tls.CurveP384}
	s := signer{cfg.Certificates[0].PrivateKey.(crypto.Signer), make(chan struct{}, 10), make(chan struct{})}
	cfg.Certificates[0].PrivateKey = s
	f := New(Config{TLS: func() *tls.Config { return cfg }, Turns: NewTurns(2), HandshakeTimeout: time.Minute})
	shaken := make(chan error, 10)
	var links []*Link
	for i := range 6 {
		server, client := tcpPair(t)
		l, err := f.Divert(server, nil, netip.Addr{})
		require.NoError(t, err)
		links = append(links, l)
		with := ca.Client("")
		if with.MaxVersion = tls.VersionTLS13; i%2 > 0 {
			with.MaxVersion = tls.VersionTLS12
		}
		with.CurvePreferences = []tls.CurveID{tls.X25519, tls.CurveP384}
		go func() { shaken <- tls.Client(client, with).Handshake() }()
	}
	patience.WaitFor(t, "all others wait", func() bool { return f.cfg.Turns.countWaiting() == 4 })
	if n := len(s.begun); n > 2 {
		t.Errorf("%d sign at a time", n)
	}
	last := links[5]
	last.End(true)
	close(s.may)
	failed := 0
	for range links {
		if <-shaken != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d handshakes have failed", failed)
	}
	for _, l := range links[:5] {
		l.End(true)
	}
	f.Wait()
	if f.cfg.Turns.free != 2 {
		t.Errorf("%d turns are free afterwards", f.cfg.Turns.free)
	}
}
