package peer

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/jointoken"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
)

const testSecret = "q3Vt0vJcN8mYw2fXz7LrKd5hBs9aGe1T"

// clusterKeys makes RSA key pairs once; they are slow to make.
var clusterKeys = sync.OnceValue(func() [2]*ClusterKey {
	var keys [2]*ClusterKey
	for i := range keys {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			panic(err)
		}
		private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
		der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
		if err != nil {
			panic(err)
		}
		pub := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		if keys[i], err = ParseClusterKey(private, pub); err != nil {
			panic(err)
		}
	}
	return keys
})

func sha256hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// admission is a JoinHandler that takes everybody in and remembers whom.
type admission struct {
	err     error // for Admit
	reply   []byte
	key     *ClusterKey // nil: the first test key
	token   jointoken.Token
	secrets []JoinSecret
	sign    func([]byte) ([]byte, []byte, error)

	mu   sync.Mutex
	seen []JoinRequest
}

func (a *admission) JoinSecrets() []JoinSecret {
	return append([]JoinSecret{{N: 1, Key: nil}, {N: 2, Key: []byte(testSecret)}}, a.secrets...)
}

func (a *admission) JoinToken(id string) ([]byte, bool) {
	if a.token.IsZero() || id != a.token.ID() {
		return nil, false
	}
	return a.token.Public(), true
}

func (a *admission) ClusterID() string { return "cluster-1" }

func (a *admission) SignChannel(msg []byte) (sig, pub []byte, err error) {
	if a.sign != nil {
		return a.sign(msg)
	}
	key := a.key
	if key == nil {
		key = clusterKeys()[0]
	}
	return key.SignChannel(msg)
}

func (a *admission) Admit(_ context.Context, r JoinRequest) ([]byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.seen = append(a.seen, r)
	if a.err != nil {
		return nil, a.err
	}
	return a.reply, nil
}

func (a *admission) requests() []JoinRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seen
}

var errUnfit = errors.New("another master.pem")

func joinConfig(t *testing.T, p *Port, id node.ID) JoinConfig {
	t.Helper()
	return JoinConfig{
		Addr: p.Addr().String(), Identity: identity(t, id), Advertise: netip.MustParseAddrPort("192.0.2.9:4520"),
		Secret: []byte(testSecret), ClusterID: "cluster-1", Payload: []byte("my version"),
	}
}

// joinable opens a member whose handler is a.
func joinable(t *testing.T, a *admission) *Port {
	t.Helper()
	return newMesh(t).member("member", func(c *Config) { c.Join = a })
}

func TestJoin(t *testing.T) {
	a := &admission{reply: []byte(strings.Repeat("reply ", 100_000))}
	p := joinable(t, a)
	cfg := joinConfig(t, p, "joiner")
	pub := clusterKeys()[0].pub
	cfg.PubFingerprint = strings.ToUpper(sha256hex(pub))
	reply, err := Join(context.Background(), cfg)
	require.NoError(t, err)
	if string(reply.Payload) != string(a.reply) || reply.ClusterID != "cluster-1" ||
		string(reply.ClusterPub) != string(pub) {
		t.Errorf("the reply is not the member's: %d bytes, cluster %q", len(reply.Payload), reply.ClusterID)
	}
	if reply.Member.ID != "member" || reply.Member.Fingerprint != p.cfg.Identity.Fingerprint() {
		t.Errorf("member asked: %+v", reply.Member)
	}
	got := a.requests()
	if len(got) != 1 {
		t.Fatalf("%d requests reached the handler", len(got))
	}
	want := JoinRequest{
		ID: "joiner", Advertise: cfg.Advertise, Fingerprint: cfg.Identity.Fingerprint(), ClusterID: "cluster-1",
		Remote: got[0].Remote,
	}
	got[0].Payload, want.Payload = nil, nil
	if got[0].Entry() != want.Entry() || got[0].ClusterID != want.ClusterID || !got[0].Remote.IsValid() {
		t.Errorf("request = %+v, want %+v", got[0], want)
	}
}

func TestJoinFailures(t *testing.T) {
	other := clusterKeys()[1]
	otherToken := tokenFor(other)
	for name, c := range map[string]struct {
		handler   *admission
		edit      func(*JoinConfig)
		want      error
		says      string
		asked     bool // the handler's Admit was called
		retryable bool
	}{
		"wrong secret": {
			edit: func(c *JoinConfig) { c.Secret = []byte("another secret of sufficient length") },
			want: ErrSecret, says: "cluster_secret",
		},
		"unknown token": {edit: func(c *JoinConfig) { c.Token = tokenFor(clusterKeys()[0]) }, want: ErrToken,
			says: "was revoked"},
		"a cluster that does not fit": {
			edit: func(c *JoinConfig) {
				c.Fits = func([]byte) error { return errUnfit }
			}, want: errUnfit, says: "another master.pem",
		},
		"token of another cluster": {
			handler: &admission{token: otherToken}, edit: func(c *JoinConfig) {
				c.Token = otherToken
			}, want: ErrClusterKey, says: "the token is for",
		},
		"other cluster": {edit: func(c *JoinConfig) { c.ClusterID = "cluster-2" }, want: ErrClusterID, says: `"cluster-1"`},
		"other key": {
			edit: func(c *JoinConfig) {
				c.PubFingerprint = sha256hex(other.pub)
			}, want: ErrClusterKey, says: "cluster_pub_fingerprint",
		},
		"public key without the private one": {
			handler: &admission{sign: func(msg []byte) ([]byte, []byte, error) {
				sig, _, err := other.SignChannel(msg)
				return sig, clusterKeys()[0].pub, err
			}},
			edit: func(c *JoinConfig) { c.PubFingerprint = sha256hex(clusterKeys()[0].pub) },
			want: ErrClusterKey, says: "did not prove",
		},
		"refused": {
			handler: &admission{err: Refusef("the node id %q is taken", "joiner")}, want: ErrRefused, says: "is taken",
			asked: true,
		},
		"internal error": {
			handler: &admission{err: errors.New("disk of the member is full")}, want: ErrUnreachable, says: "internal",
			asked:     true,
			retryable: true,
		},
		"reply too large": {
			handler: &admission{reply: make([]byte, MaxJoinReply+1)}, want: ErrUnreachable, says: "internal", asked: true,
			retryable: true,
		},
		"wildcard advertised": {
			edit: func(c *JoinConfig) { c.Advertise = netip.MustParseAddrPort("0.0.0.0:4520") }, want: ErrRefused,
			says: "cluster_advertise",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := c.handler
			if a == nil {
				a = &admission{}
			}
			p := joinable(t, a)
			cfg := joinConfig(t, p, "joiner")
			if c.edit != nil {
				c.edit(&cfg)
			}
			_, err := Join(context.Background(), cfg)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Join: %v; want %v saying %q", err, c.want, c.says)
			}
			if JoinRetryable(err) != c.retryable {
				t.Errorf("JoinRetryable = %v", !c.retryable)
			}
			if strings.Contains(err.Error(), testSecret) || strings.Contains(err.Error(), "disk") {
				t.Errorf("the error tells too much: %v", err)
			}
			if asked := len(a.requests()) > 0; asked != c.asked {
				t.Errorf("Admit called: %v, want %v", asked, c.asked)
			}
		})
	}
}

func TestJoinUnreachable(t *testing.T) {
	p := joinable(t, &admission{})
	cfg := joinConfig(t, p, "joiner")
	require.NoError(t, p.Close())
	if _, err := Join(context.Background(), cfg); !errors.Is(err, ErrUnreachable) || !JoinRetryable(err) {
		t.Errorf("Join: %v, want ErrUnreachable", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Join(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("Join with an ended context: %v", err)
	}
}

// TestJoin_NoAnswer: that a connection ends does not say that the secret or the token is wrong, however it ends.
func TestJoin_NoAnswer(t *testing.T) {
	for name, end := range map[string]func(*tls.Conn){
		"ended":      func(c *tls.Conn) { _ = c.CloseWrite() },
		"cut off":    func(c *tls.Conn) { _ = c.NetConn().(*net.TCPConn).CloseWrite() },
		"reset":      func(c *tls.Conn) { _ = c.NetConn().(*net.TCPConn).SetLinger(0); _ = c.NetConn().Close() },
		"half frame": func(c *tls.Conn) { _, _ = c.Write([]byte{frameProof, 0}); _ = c.CloseWrite() },
	} {
		for _, withToken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, token %t", name, withToken), func(t *testing.T) {
				cfg := joinConfig(t, &Port{}, "joiner")
				cfg.Addr = falseMember(t, "member", func(c *tls.Conn) {
					_, _, _ = readFrame(c, maxUnproven)
					end(c)
				})
				if withToken {
					cfg.Token = tokenFor(clusterKeys()[0])
				}
				if _, err := Join(t.Context(), cfg); !errors.Is(err, ErrUnreachable) || !JoinRetryable(err) {
					t.Errorf("Join: %v, want ErrUnreachable", err)
				}
			})
		}
	}
}

// TestJoin_MemberTooSlow: a member that comes too late to the proof, on a busy machine say, does not know whether it is
// right.
func TestJoin_MemberTooSlow(t *testing.T) {
	p := newMesh(t).member("member", func(c *Config) { c.Join, c.Limits.JoinProof = &admission{}, time.Nanosecond })
	_, err := Join(t.Context(), joinConfig(t, p, "joiner"))
	if !errors.Is(err, ErrUnreachable) || !JoinRetryable(err) {
		t.Errorf("Join: %v, want ErrUnreachable", err)
	}
}

func TestJoinSelf(t *testing.T) {
	p := joinable(t, &admission{})
	cfg := joinConfig(t, p, "member")
	cfg.Identity = p.cfg.Identity
	if _, err := Join(context.Background(), cfg); !errors.Is(err, ErrSelf) {
		t.Errorf("Join: %v, want ErrSelf", err)
	}
}

func TestJoinConfigIsChecked(t *testing.T) {
	for name, edit := range map[string]func(*JoinConfig){
		"empty secret":   func(c *JoinConfig) { c.Secret = nil },
		"short secret":   func(c *JoinConfig) { c.Secret = []byte("password") },
		"no identity":    func(c *JoinConfig) { c.Identity = nil },
		"no address":     func(c *JoinConfig) { c.Advertise = netip.AddrPort{} },
		"long payload":   func(c *JoinConfig) { c.Payload = make([]byte, MaxJoinPayload+1) },
		"bad pin":        func(c *JoinConfig) { c.PubFingerprint = "abc" },
		"odd cluster id": func(c *JoinConfig) { c.ClusterID = "a\nb" },
	} {
		cfg := joinConfig(t, &Port{}, "joiner")
		cfg.Addr = "127.0.0.1:1" // nothing listens; it must not come so far
		edit(&cfg)
		if _, err := Join(context.Background(), cfg); err == nil || errors.Is(err, ErrUnreachable) {
			t.Errorf("%s: %v, want a complaint before dialling", name, err)
		}
	}
}

// Ten wrong guesses in a row: after the first, the member makes the address wait, and says so without looking.
func TestWrongProofsSlowDown(t *testing.T) {
	a := &admission{}
	p := joinable(t, a)
	wrong := joinConfig(t, p, "joiner")
	wrong.Secret = []byte("another secret of sufficient length")
	if _, err := Join(context.Background(), wrong); !errors.Is(err, ErrSecret) {
		t.Fatalf("first wrong guess: %v", err)
	}
	for range 3 {
		if _, err := Join(context.Background(), wrong); !errors.Is(err, ErrSlowDown) || !JoinRetryable(err) {
			t.Errorf("next wrong guess: %v, want ErrSlowDown", err)
		}
	}
	if _, err := Join(context.Background(), joinConfig(t, p, "joiner")); !errors.Is(err, ErrSlowDown) {
		t.Errorf("right secret within the pause: %v, want ErrSlowDown", err)
	}
	if len(a.requests()) != 0 {
		t.Error("the handler was asked")
	}
}

func TestJoinGuard(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newJoinGuard(2, func() time.Time { return now })
	addr := netip.MustParseAddr("192.0.2.1")
	leave1, ok1 := g.takePlace()
	leave2, ok2 := g.takePlace()
	if _, ok := g.takePlace(); !ok1 || !ok2 || ok {
		t.Fatalf("places: %v %v %v, want two", ok1, ok2, ok)
	}
	leave1()
	leave1() // twice is harmless
	leave2()
	for i := range 12 { // pauses of 1, 2, 4 ... 256, 300, 300 seconds
		g.noteFailure(addr)
		pause := min(wrongPause<<i, wrongPauseMax)
		if g.startAttempt(addr) {
			t.Fatalf("no pause after wrong proof %d", i+1)
		}
		now = now.Add(pause - time.Millisecond)
		if g.startAttempt(addr) {
			t.Fatalf("the pause after wrong proof %d is too short", i+1)
		}
		now = now.Add(time.Millisecond)
		if !g.startAttempt(addr) {
			t.Fatalf("the pause after wrong proof %d is too long", i+1)
		}
	}
	g.noteFailure(addr)
	g.noteSuccess(addr)
	if !g.startAttempt(addr) {
		t.Error("still slow after a right proof")
	}
}

func TestJoinGuardIsBounded(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newJoinGuard(8, func() time.Time { return now })
	for i := range 3 * guardMax {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if !g.startAttempt(addr) {
			t.Fatalf("no place for address %d", i+1)
		}
		g.noteFailure(addr)
		if len(g.addrs) > guardMax {
			t.Fatalf("%d addresses are remembered", len(g.addrs))
		}
	}
	if !g.startAttempt(netip.MustParseAddr("192.0.2.1")) {
		t.Error("no place for a new address")
	}
}
