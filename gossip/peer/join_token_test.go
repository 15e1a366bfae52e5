package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"saltclusterd/gossip/jointoken"
	"saltclusterd/integration/require"
)

// tokenFor makes a token for the cluster with that key.
func tokenFor(key *ClusterKey) jointoken.Token {
	tok, err := jointoken.New().For(PubFingerprint(key.pub))
	if err != nil {
		panic(err)
	}
	return tok
}

func TestJoinWithToken(t *testing.T) {
	tok := tokenFor(clusterKeys()[0])
	a := &admission{reply: []byte("welcome"), token: tok}
	p := joinable(t, a)
	cfg := joinConfig(t, p, "joiner")
	cfg.Secret, cfg.Token = nil, tok
	reply, err := Join(context.Background(), cfg)
	if err != nil || string(reply.Payload) != "welcome" {
		t.Fatalf("%q, %v", reply.Payload, err)
	}
	got := a.requests()
	if len(got) != 1 || got[0].Token != tok.ID() || got[0].Secret != 0 || got[0].ID != "joiner" {
		t.Errorf("the handler saw %+v", got)
	}
}

// The number of the secret that was proven goes to the handler, which may accept several.
func TestJoinWithTheSecondSecret(t *testing.T) {
	const second = "another secret of sufficient length"
	a := &admission{secrets: []JoinSecret{{N: 7, Key: []byte(second)}}}
	p := joinable(t, a)
	cfg := joinConfig(t, p, "joiner")
	cfg.Secret = []byte(second)
	if _, err := Join(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	if got := a.requests(); len(got) != 1 || got[0].Secret != 7 || got[0].Token != "" {
		t.Errorf("the handler saw %+v", got)
	}
}

// tokenHello makes the hello of a token's holder on this connection.
func tokenHello(t *testing.T, p *Port, i *Identity, tok jointoken.Token, id string) func(*tls.Conn) []byte {
	return func(c *tls.Conn) []byte {
		material, err := exportKeying(c)
		require.NoError(t, err)
		proof := Proof{Exporter: material, Joiner: i.id, JoinerFP: i.Fingerprint(), Member: p.ID(),
			MemberFP: p.cfg.Identity.Fingerprint()}
		return hello{ID: i.id, SecretID: id, Proof: tok.Sign(proof.tokenMessage(id)), Signed: true}.appendTo(nil)
	}
}

func TestTokenProofsThatFail(t *testing.T) {
	tok, guess := tokenFor(clusterKeys()[0]), tokenFor(clusterKeys()[0])
	i, victim := identity(t, "joiner"), identity(t, "victim")
	for name, body := range map[string]func(*testing.T, *Port) func(*tls.Conn) []byte{
		"another token's key": func(t *testing.T,
			p *Port) func(*tls.Conn) []byte {
			return tokenHello(t, p, i, guess, tok.ID())
		},
		"an unknown token": func(t *testing.T,
			p *Port) func(*tls.Conn) []byte {
			return tokenHello(t, p, i, guess, guess.ID())
		},
		"another's id": func(t *testing.T,
			p *Port) func(*tls.Conn) []byte {
			return tokenHello(t, p, victim, tok, tok.ID())
		},
		"the token's id as a secret's": func(t *testing.T, p *Port) func(*tls.Conn) []byte {
			return func(c *tls.Conn) []byte {
				h, err := parseHello(helloFor(t, p, i, testSecret, roleJoiner)(c))
				require.NoError(t, err)
				h.SecretID = tok.ID()
				return h.appendTo(nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := &admission{token: tok}
			p := joinable(t, a)
			kind, answer, err := speak(t, p, i, frameHello, body(t, p))
			if err == nil && !saysWrongProof(kind, answer) {
				t.Errorf("an answer of type %d came: %q", kind, answer)
			}
			if p.guard.startAttempt(netip.MustParseAddr("127.0.0.1")) && name != "another's id" {
				t.Error("the address need not wait")
			}
			if len(a.requests()) != 0 {
				t.Error("the handler was asked")
			}
		})
	}
}

func TestTokenProofReplay(t *testing.T) {
	tok := tokenFor(clusterKeys()[0])
	p := joinable(t, &admission{token: tok})
	i := identity(t, "joiner")
	var recorded []byte
	first := tokenHello(t, p, i, tok, tok.ID())
	kind, _, err := speak(t, p, i, frameHello, func(c *tls.Conn) []byte {
		recorded = first(c)
		return recorded
	})
	if err != nil || kind != frameCluster {
		t.Fatalf("the true proof: type %d, %v", kind, err)
	}
	kind, answer, err := speak(t, p, i, frameHello, func(*tls.Conn) []byte { return recorded })
	if err != nil || !saysWrongProof(kind, answer) {
		t.Errorf("the replayed proof: type %d, %v; want that it is wrong", kind, err)
	}
}

// A false member, which does not hold the cluster's key, is told nothing and cannot use what it saw.
func TestTokenAndFalseMember(t *testing.T) {
	tok := tokenFor(clusterKeys()[0])
	for name, sign := range map[string]func(Proof) ([]byte, []byte){
		"a key of its own": func(p Proof) ([]byte, []byte) {
			sig, pub, _ := clusterKeys()[1].SignChannel(p.clusterMessage())
			return sig, pub
		},
		"no signature": func(Proof) ([]byte, []byte) { return []byte("x"), clusterKeys()[0].pub },
		"the signature of another channel": func(p Proof) ([]byte, []byte) {
			p.Exporter = make([]byte, exporterSize)
			sig, pub, _ := clusterKeys()[0].SignChannel(p.clusterMessage())
			return sig, pub
		},
	} {
		t.Run(name, func(t *testing.T) {
			more := make(chan int, 1)
			addr := falseMember(t, "member", func(s *tls.Conn) {
				_, body, err := readFrame(s, maxUnproven)
				if err != nil {
					return
				}
				if _, err := parseHello(body); err != nil {
					return
				}
				joiner, _ := peerCert(s.ConnectionState())
				material, _ := exportKeying(s)
				sig, pub := sign(Proof{Exporter: material, JoinerFP: joiner.fingerprint()})
				_ = writeFrame(s, frameCluster, clusterProof{ClusterID: "cluster-1", PubPEM: pub, Signature: sig}.appendTo(nil))
				rest, _ := io.ReadAll(io.LimitReader(s, 1<<20))
				more <- len(rest)
			})
			cfg := joinConfig(t, &Port{}, "joiner")
			cfg.Addr, cfg.Token = addr, tok
			if _, err := Join(context.Background(), cfg); !errors.Is(err, ErrClusterKey) ||
				strings.Contains(err.Error(), strings.Split(tok.Text(), ".")[2]) {
				t.Errorf("Join: %v", err)
			}
			if n := <-more; n != 0 {
				t.Errorf("the joiner told it %d bytes more", n)
			}
		})
	}
}

// A wrong secret makes the pause longer each time, and the log says how often it happened.
func TestFailedProofsAreCounted(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newJoinGuard(2, func() time.Time { return now })
	addr := netip.MustParseAddr("192.0.2.1")
	for want := 1; want < 5; want++ {
		if n, pause := g.noteFailure(addr); n != want || pause != wrongPause<<(want-1) {
			t.Errorf("wrong proof %d: %d, %s", want, n, pause)
		}
	}
}
