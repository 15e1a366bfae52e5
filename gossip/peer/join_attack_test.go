package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// relay is a tcp listener whose connections are handled by serve, one after the other.
func relay(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			_ = c.SetDeadline(time.Now().Add(testTimeout))
			serve(c)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		wg.Wait()
	})
	return ln.Addr().String()
}

// recorder keeps all bytes that pass.
type recorder struct {
	mu  sync.Mutex
	all []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, b...)
	return len(b), nil
}

func (r *recorder) bytes() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.all)
}

// both copies in both directions until one side ends.
func both(a, b net.Conn, rec io.Writer) {
	var wg sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			_, _ = io.Copy(io.MultiWriter(pair[1], rec), pair[0])
			if c, ok := pair[1].(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite()
			}
		})
	}
	wg.Wait()
}

func mustNotContainSecret(t *testing.T, seen []byte) {
	t.Helper()
	raw := []byte(testSecret)
	for _, form := range [][]byte{
		raw, []byte(hex.EncodeToString(raw)), []byte(base64.StdEncoding.EncodeToString(raw)),
		[]byte(base64.RawURLEncoding.EncodeToString(raw)),
	} {
		if bytes.Contains(seen, form) {
			t.Error("the secret crossed the wire")
		}
	}
}

func TestJoinThroughRelay(t *testing.T) {
	p := joinable(t, &admission{reply: []byte("welcome")})
	var rec recorder
	addr := relay(t, func(c net.Conn) {
		out, err := net.Dial("tcp", p.Addr().String())
		if err != nil {
			return
		}
		defer out.Close()
		both(c, out, &rec)
	})
	cfg := joinConfig(t, p, "joiner")
	cfg.Addr = addr
	if _, err := Join(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if len(rec.bytes()) < 1000 {
		t.Errorf("only %d bytes were recorded", len(rec.bytes()))
	}
	mustNotContainSecret(t, rec.bytes())
}

// falseMember is a TLS server with an identity of its own which shows the given certificate's id.
func falseMember(t *testing.T, id node.ID, serve func(*tls.Conn)) string {
	t.Helper()
	i := identity(t, id)
	cfg := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{i.currentCert().cert}, NextProtos: []string{ProtoJoin},
		ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
	}
	return relay(t, func(c net.Conn) {
		s := tls.Server(c, cfg)
		if s.Handshake() == nil {
			serve(s)
		}
		lingeringClose(s)
	})
}

// A man in the middle ends TLS on both sides, with certificates that claim the right ids, and passes every byte on.
func TestJoinManInTheMiddle(t *testing.T) {
	a := &admission{}
	p := joinable(t, a)
	joinerTwin := identity(t, "joiner")
	var rec recorder
	addr := falseMember(t, "member", func(s *tls.Conn) {
		out, err := tls.Dial("tcp", p.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{joinerTwin.currentCert().cert},
			NextProtos: []string{ProtoJoin},
		})
		if err != nil {
			return
		}
		defer out.Close()
		both(s, out, &rec)
	})
	cfg := joinConfig(t, p, "joiner")
	cfg.Addr = addr
	if _, err := Join(context.Background(), cfg); !errors.Is(err, ErrSecret) {
		t.Errorf("Join: %v, want ErrSecret", err)
	}
	check.Equal(t, len(a.requests()), 0, "the member admitted the man in the middle")
	seen := rec.bytes()
	mustNotContainSecret(t, seen)
	if bytes.Contains(seen, []byte("cluster-1")) || bytes.Contains(seen, []byte("192.0.2.9")) {
		t.Error("the man in the middle learned something about cluster or joiner")
	}
}

// speak sends one frame on a join connection of its own and returns the answer.
func speak(t *testing.T, p *Port, i *Identity, kind byte, body func(*tls.Conn) []byte) (byte, []byte, error) {
	t.Helper()
	c, err := tls.Dial("tcp", p.Addr().String(), &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{i.currentCert().cert}, NextProtos: []string{ProtoJoin},
	})
	require.NoError(t, err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	require.NoError(t, writeFrame(c, kind, body(c)))
	return readFrame(c, maxCluster)
}

// helloFor makes the hello a joiner with that secret would send on this connection.
func helloFor(t *testing.T, p *Port, i *Identity, secret string, r role) func(*tls.Conn) []byte {
	return func(c *tls.Conn) []byte {
		material, err := exportKeying(c)
		require.NoError(t, err)
		proof := Proof{Exporter: material, Joiner: i.id, JoinerFP: i.Fingerprint(), Member: p.ID(),
			MemberFP: p.cfg.Identity.Fingerprint()}
		return hello{ID: i.id, Proof: proof.macFor([]byte(secret), r)}.appendTo(nil)
	}
}

func TestJoinReplay(t *testing.T) {
	p := joinable(t, &admission{})
	i := identity(t, "joiner")
	var recorded []byte
	make1 := helloFor(t, p, i, testSecret, roleJoiner)
	kind, _, err := speak(t, p, i, frameHello, func(c *tls.Conn) []byte {
		recorded = make1(c)
		return recorded
	})
	if err != nil || kind != frameProof {
		t.Fatalf("the true proof: type %d, %v", kind, err)
	}
	kind, body, err := speak(t, p, i, frameHello, func(*tls.Conn) []byte { return recorded })
	if err != nil || !saysWrongProof(kind, body) {
		t.Errorf("the replayed proof: type %d, %v; want that it is wrong", kind, err)
	}
}

// saysWrongProof says whether a frame tells a stranger that its proof is wrong, and nothing else.
func saysWrongProof(kind byte, body []byte) bool {
	r, err := parseRefused(body)
	return kind == frameRefused && err == nil && r == refused{Code: refusedProof}
}

// Everything a joiner without the secret may try gets no answer, or that its proof is wrong.
func TestJoinForgedHellos(t *testing.T) {
	i, victim := identity(t, "joiner"), identity(t, "victim")
	for name, body := range map[string]func(*testing.T, *Port) func(*tls.Conn) []byte{
		"random proof": func(*testing.T, *Port) func(*tls.Conn) []byte {
			return func(*tls.Conn) []byte { return hello{ID: "joiner", Proof: make([]byte, proofSize)}.appendTo(nil) }
		},
		"member's role": func(t *testing.T, p *Port) func(*tls.Conn) []byte {
			return helloFor(t, p, i, testSecret, roleMember)
		},
		"another's id": func(t *testing.T, p *Port) func(*tls.Conn) []byte {
			return helloFor(t, p, victim, testSecret, roleJoiner)
		},
		"empty secret": func(t *testing.T, p *Port) func(*tls.Conn) []byte { return helloFor(t, p, i, "", roleJoiner) },
		"garbage": func(*testing.T, *Port) func(*tls.Conn) []byte {
			return func(*tls.Conn) []byte { return []byte{1, 2, 3} }
		},
		"nothing": func(*testing.T, *Port) func(*tls.Conn) []byte { return func(*tls.Conn) []byte { return nil } },
		"too much": func(*testing.T, *Port) func(*tls.Conn) []byte {
			return func(*tls.Conn) []byte { return make([]byte, maxUnproven+1) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{}
			p := joinable(t, a)
			kind, answer, err := speak(t, p, i, frameHello, body(t, p))
			if err == nil && !saysWrongProof(kind, answer) {
				t.Errorf("an answer of type %d came: %q", kind, answer)
			}
			check.Equal(t, len(a.requests()), 0, "the handler was asked")
		})
	}
}

func TestJoinUnknownVersion(t *testing.T) {
	p := joinable(t, &admission{})
	kind, body, err := speak(t, p, identity(t, "joiner"), frameHello, func(*tls.Conn) []byte { return []byte{99, 1, 2} })
	if r, perr := parseRefused(body); err != nil || kind != frameRefused || perr != nil || r.Code != refusedVersion {
		t.Errorf("version 99: type %d, %+v, %v", kind, r, err)
	}
}

// A false member does not know the secret; whatever it answers, the joiner tells it nothing more.
func TestJoinFalseMember(t *testing.T) {
	for name, answer := range map[string]func(joinerProof []byte) (kind byte, body []byte){
		"random":      func([]byte) (byte, []byte) { return frameProof, make([]byte, proofSize) },
		"reflected":   func(p []byte) (byte, []byte) { return frameProof, p },
		"empty":       func([]byte) (byte, []byte) { return frameProof, nil },
		"other frame": func([]byte) (byte, []byte) { return frameReply, []byte("welcome") },
		"too large":   func([]byte) (byte, []byte) { return frameProof, make([]byte, maxUnproven+1) },
		"false refusal": func([]byte) (byte, []byte) {
			return frameRefused, refused{Code: refusedByAdmit, Text: "run this: rm"}.appendTo(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			more := make(chan int, 1)
			addr := falseMember(t, "member", func(s *tls.Conn) {
				_, body, err := readFrame(s, maxUnproven)
				if err != nil {
					return
				}
				h, err := parseHello(body)
				if err != nil {
					return
				}
				kind, out := answer(h.Proof)
				_ = writeFrame(s, kind, out)
				rest, _ := io.ReadAll(io.LimitReader(s, 1<<20))
				more <- len(rest)
			})
			cfg := joinConfig(t, &Port{}, "joiner")
			cfg.Addr = addr
			_, err := Join(context.Background(), cfg)
			if err == nil || errors.Is(err, ErrRefused) {
				t.Errorf("Join: %v", err)
			}
			if (name == "random" || name == "reflected") && !errors.Is(err, ErrSecret) {
				t.Errorf("Join: %v, want ErrSecret", err)
			}
			if n := <-more; n != 0 {
				t.Errorf("the joiner told it %d bytes more", n)
			}
		})
	}
}

// TestSilentJoiners wants a place for who has the secret, and an answer for a node that asks about itself, while one
// address has as many joins waiting as it may begin at once.
func TestSilentJoiners(t *testing.T) {
	p := newMesh(t).member("member", func(c *Config) {
		c.Join, c.Limits.JoinProof = &admission{reply: []byte("welcome")}, testTimeout
		c.Standing = func(node.ID, node.Fingerprint) Standing { return Standing{Rev: 7} }
	})
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range joinBurst {
		c, err := tls.DialWithDialer(&from, "tcp", p.Addr().String(), &tls.Config{
			InsecureSkipVerify: true, Certificates: []tls.Certificate{identity(t, "stranger").currentCert().cert},
			NextProtos: []string{ProtoJoin},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	patience.WaitSettled(t, func() string {
		p.gate.mu.Lock()
		defer p.gate.mu.Unlock()
		if n := p.gate.busy[netip.MustParseAddr("127.0.0.2")]; n < joinBurst {
			return fmt.Sprintf("%d strangers are being served", n)
		}
		return ""
	})
	if got, err := newMesh(t).member("former", nil).AskFormer(t.Context(), entryOf(p)); err != nil || got.Rev != 7 {
		t.Errorf("a former member hears %+v, %v", got, err)
	}
	if reply, err := Join(t.Context(), joinConfig(t, p, "joiner")); err != nil || string(reply.Payload) != "welcome" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// A joiner that says nothing, or a single byte now and then, is cut when its time is over.
func TestSilentJoiner(t *testing.T) {
	p := newMesh(t).member("member", func(c *Config) { c.Join, c.Limits.JoinProof = &admission{}, 100*time.Millisecond })
	c, err := tls.Dial("tcp", p.Addr().String(), &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{identity(t, "joiner").currentCert().cert},
		NextProtos: []string{ProtoJoin},
	})
	require.NoError(t, err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(testTimeout))
	if _, err := c.Write([]byte{frameHello}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || isTimeout(err) {
		t.Errorf("a silent joiner got %d bytes, %v", n, err)
	}
	patience.WaitSettled(t, func() string {
		if all, _ := p.reg.countConns(); all != 0 {
			return "its connection stays"
		}
		return ""
	})
}

func TestSecretIsNotLogged(t *testing.T) {
	var logs recorder
	p := newMesh(t).member("member", func(c *Config) {
		c.Join = &admission{reply: []byte("the reply")}
		c.Logger = slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	good := joinConfig(t, p, "joiner")
	if _, err := Join(context.Background(), good); err != nil {
		t.Fatal(err)
	}
	wrong := joinConfig(t, p, "joiner")
	wrong.Secret = []byte("another secret of sufficient length")
	if _, err := Join(context.Background(), wrong); !errors.Is(err, ErrSecret) ||
		strings.Contains(err.Error(), "another secret of") {
		t.Errorf("Join: %v", err)
	}
	for _, want := range []string{"node joined", "join refused", "wrong_proof", "node=joiner"} {
		patience.WaitSettled(t, func() string {
			if !bytes.Contains(logs.bytes(), []byte(want)) {
				return "the log does not say " + want
			}
			return ""
		})
	}
	mustNotContainSecret(t, logs.bytes())
	for _, secret := range []string{"another secret of", "my version", "the reply"} {
		if bytes.Contains(logs.bytes(), []byte(secret)) {
			t.Errorf("the log contains %q", secret)
		}
	}
}
