package peer

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// stream answers a request with one byte and then nothing, until the client goes.
func stream(w http.ResponseWriter, r *http.Request) {
	_, _ = w.Write([]byte("x"))
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

// openStream starts a request for stream and returns its body after the first byte.
func openStream(t *testing.T, from *Port, to string) io.ReadCloser {
	t.Helper()
	res, err := from.HTTPClient().Get("https://" + to + "/stream")
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() })
	if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return res.Body
}

// breaks waits for a reader to fail.
func breaks(t *testing.T, what string, r io.Reader) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		_, err := r.Read(make([]byte, 1))
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil {
			t.Errorf("%s goes on after revocation", what)
		}
	case <-time.After(testTimeout):
		t.Errorf("%s is still open after revocation", what)
	}
}

func TestRevoke(t *testing.T) {
	m := newMesh(t)
	withStream := func(c *Config) { c.Handler = http.HandlerFunc(stream) }
	a, b, other := m.member("a", withStream), m.member("b", withStream), m.member("other", nil)
	echo(t, a, ProtoRaft)
	echo(t, b, ProtoRaft)
	in, out := dial(t, b, "a", ProtoRaft), dial(t, a, "b", ProtoRaft)
	unrelated := dial(t, other, "a", ProtoRaft)
	streamIn, streamOut := openStream(t, b, "a"), openStream(t, a, "b")

	fp := m.remove("b")
	if n := a.Revoke(fp); n != 4 {
		t.Errorf("Revoke closed %d connections, want 4", n)
	}
	breaks(t, "raft from b", in)
	breaks(t, "raft to b", out)
	breaks(t, "request from b", streamIn)
	breaks(t, "request to b", streamOut)
	check.NoError(t, works(unrelated), "another member's connection")
	if c, err := a.Dial(context.Background(), "b", ProtoRaft); err == nil {
		_ = c.Close()
		t.Error("a still dials b")
	}
	if a.Revoke(fp) != 0 {
		t.Error("a second Revoke found connections")
	}
}

// A node that is cut off does not hear of its removal: it goes on dialling with the roster it has.
func TestRevokedNodeIsRefused(t *testing.T) {
	m, old := newMesh(t), newMesh(t)
	a := m.member("a", nil)
	echo(t, a, ProtoRaft)
	b := old.member("b", nil)
	old.add(entryOf(a))
	m.add(entryOf(b))
	require.NoError(t, works(dial(t, b, "a", ProtoRaft)))
	a.Revoke(m.remove("b"))
	for _, proto := range []string{ProtoRaft, ProtoGossip} {
		if c, err := b.Dial(context.Background(), "a", proto); err == nil {
			_ = c.Close()
			t.Errorf("%s: Dial reports success to a removed node", proto)
		}
	}
	if res, err := b.HTTPClient().Get("https://a/"); err == nil {
		_ = res.Body.Close()
		t.Error("peer RPC answers a removed node")
	}
}

// Handshakes that run while a certificate is revoked must not slip through between the check and the registration.
func TestRevokeDuringHandshakes(t *testing.T) {
	m, old := newMesh(t), newMesh(t)
	a := m.member("a", nil)
	echo(t, a, ProtoRaft)
	b := old.member("b", nil)
	old.add(entryOf(a))
	m.add(entryOf(b))
	var mu sync.Mutex
	var open []net.Conn
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				c, err := b.Dial(ctx, "a", ProtoRaft)
				if err != nil {
					continue
				}
				mu.Lock()
				open = append(open, c)
				mu.Unlock()
			}
		})
	}
	patience.WaitSettled(t, func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(open) < 8 {
			return "dialling does not work"
		}
		return ""
	})
	fp := m.remove("b")
	a.Revoke(fp)
	for _, left := range a.reg.admittedCerts() {
		if left == fp {
			t.Error("a connection of the revoked certificate is registered after Revoke")
		}
	}
	cancel()
	wg.Wait()
	for _, c := range open {
		if works(c) == nil {
			t.Error("a connection survived")
		}
		_ = c.Close()
	}
}

// The sweep closes the connections of a node that left the roster without a call of Revoke.
func TestSweep_WithoutRevoke(t *testing.T) {
	m := newMesh(t)
	a := m.member("a", func(c *Config) { c.Limits.Sweep = 10 * time.Millisecond })
	b := m.member("b", nil)
	echo(t, a, ProtoRaft)
	c := dial(t, b, "a", ProtoRaft)
	m.remove("b")
	breaks(t, "raft from b", c)
}

func TestMovedNode(t *testing.T) {
	m := newMesh(t)
	a, b := m.member("a", nil), m.member("b", nil)
	echo(t, b, ProtoRaft)
	dial(t, a, "b", ProtoRaft)
	// b comes back with a new certificate at a new address; the old one is revoked.
	b2 := m.port("b", nil)
	echo(t, b2, ProtoRaft)
	a.Revoke(m.remove("b"))
	m.add(entryOf(b2))
	check.NoError(t, works(dial(t, a, "b", ProtoRaft)), "dial the new b")
}
