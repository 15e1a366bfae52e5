package guard

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

var (
	remote   = netip.MustParseAddrPort("192.0.2.7:40000")
	salthost = netip.MustParseAddrPort("10.1.2.3:40000")
	nonce    = strings.Repeat("0f", 16)
)

// minion is a key pair with its token.
type minion struct {
	public *saltcrypt.PublicKey
	tok    []byte
}

func newMinion(t testing.TB, word string) minion {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	require.NoError(t, err)
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	private, err := saltcrypt.ParseMasterKey(text)
	require.NoError(t, err)
	public, err := saltcrypt.ParsePublicKey(private.PublicText())
	require.NoError(t, err)
	tok, err := private.SignX931([]byte(word))
	require.NoError(t, err)
	return minion{public, tok}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func reasonOf(r *Refusal) Reason {
	if r == nil {
		return ""
	}
	return r.Reason
}

func TestCheckEnvelope(t *testing.T) {
	g := New(Config{Logger: quiet()})
	badLoad := saltwire.BadLoad()
	for _, c := range []struct {
		name   string
		env    saltwire.Envelope
		want   Reason
		answer []byte
	}{
		{"sealed", saltwire.Envelope{Enc: "aes", Version: 3, ID: "web"}, "", nil},
		{"clear", saltwire.Envelope{Enc: "clear", Version: 3}, "", nil},
		{"newer", saltwire.Envelope{Enc: "aes", Version: 4, ID: "web"}, "", nil},
		{"version 2", saltwire.Envelope{Enc: "aes", Version: 2, ID: "web"}, ReasonVersion, badLoad},
		{"no version", saltwire.Envelope{Enc: "clear"}, ReasonVersion, badLoad},
		{"other enc", saltwire.Envelope{Enc: "pub", Version: 3}, "enc_is_neither_clear_nor_aes", nil},
		{"no enc", saltwire.Envelope{Version: 3}, "enc_is_neither_clear_nor_aes", nil},
		{"enc in capitals", saltwire.Envelope{Enc: "AES", Version: 3, ID: "web"}, "enc_is_neither_clear_nor_aes", nil},
		{"no id", saltwire.Envelope{Enc: "aes", Version: 3}, ReasonInvalidID, badLoad},
		{"path", saltwire.Envelope{Enc: "aes", Version: 3, ID: "../web"}, ReasonInvalidID, badLoad},
		{"our own hidden minion", saltwire.Envelope{Enc: "aes", Version: 3, ID: ".saltclusterd"}, ReasonInvalidID, badLoad},
	} {
		r := g.CheckEnvelope(c.env, remote)
		check.Equal(t, reasonOf(r), c.want, c.name)
		if r != nil && !bytes.Equal(r.Answer, c.answer) {
			t.Errorf("%s: answer %q, want %q", c.name, r.Answer, c.answer)
		}
	}
	if r := New(Config{MinVersion: 2, Logger: quiet()}).CheckEnvelope(saltwire.Envelope{Enc: "clear", Version: 2},
		remote); r != nil {
		t.Errorf("version 2 with minimum_auth_version 2: %v", r)
	}
}

func TestCheckClear(t *testing.T) {
	g := New(Config{Logger: quiet(), AllowClear: map[string][]netip.Prefix{
		"publish": {netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")},
	}})
	for _, c := range []struct {
		cmd    string
		remote netip.AddrPort
		want   Reason
	}{
		{"ping", remote, ""},
		{"publish", remote, ReasonAdminCommand},
		{"publish", salthost, ""},
		{"publish", netip.MustParseAddrPort("[::ffff:10.1.2.3]:1"), ""},
		{"publish", netip.MustParseAddrPort("[2001:db8::1]:1"), ""},
		{"publish", netip.MustParseAddrPort("[2001:db9::1]:1"), ReasonAdminCommand},
		{"publish", netip.AddrPort{}, ReasonAdminCommand},
		{"runner", salthost, ReasonAdminCommand},
		{"wheel", salthost, ReasonAdminCommand},
		{"mk_token", salthost, ReasonAdminCommand},
		{"get_token", salthost, ReasonAdminCommand},
		{"_return", salthost, ReasonUnknownCommand},
		{"_prep_auth_info", salthost, ReasonUnknownCommand},
		{"", salthost, ReasonUnknownCommand},
	} {
		r := g.CheckClear(c.cmd, c.remote)
		check.Equal(t, reasonOf(r), c.want, c.cmd, "from", c.remote)
		if c.want == ReasonUnknownCommand && !bytes.Equal(r.Answer, []byte{0x80}) {
			t.Errorf("%s: answer %x, want {} as stock", c.cmd, r.Answer)
		}
	}
}

func TestCheckAuth(t *testing.T) {
	g := New(Config{Logger: quiet(), Known: func(pub string) bool { return pub == "looked at before" }})
	good := newMinion(t, "salt").public.Text()
	for _, c := range []struct {
		name string
		auth saltwire.AuthRequest
		want Reason
	}{
		{"good", saltwire.AuthRequest{ID: "web", Pub: good}, ""},
		{"known", saltwire.AuthRequest{ID: "web", Pub: "looked at before"}, ""},
		{"known, hidden id", saltwire.AuthRequest{ID: ".web", Pub: "looked at before"}, ReasonInvalidID},
		{"hidden id", saltwire.AuthRequest{ID: ".web", Pub: good}, ReasonInvalidID},
		{"no key", saltwire.AuthRequest{ID: "web"}, ReasonUnusablePub},
		{"no RSA key", saltwire.AuthRequest{ID: "web", Pub: strings.Replace(good, "A", "!", 5)}, ReasonUnusablePub},
		{"two keys", saltwire.AuthRequest{ID: "web", Pub: good + "\n" + good}, ReasonUnusablePub},
	} {
		check.Equal(t, reasonOf(g.CheckAuth(c.auth, remote)), c.want, c.name)
	}
}

func TestCheckLoad(t *testing.T) {
	web, other, wrong := newMinion(t, "salt"), newMinion(t, "salt"), newMinion(t, "pepper")
	now := time.Unix(1_700_000_000, 0)
	env := func(change ...func(*saltwire.Envelope)) saltwire.Envelope {
		e := saltwire.Envelope{Enc: "aes", Version: 3, ID: "web"}
		for _, c := range change {
			c(&e)
		}
		return e
	}
	load := func(change ...func(*saltwire.Peek)) saltwire.Peek {
		p := saltwire.Peek{Cmd: "_pillar", ID: "web", Nonce: nonce, TS: now.Unix(), HasTS: true, HasTok: true, Tok: web.tok}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	version2 := func(e *saltwire.Envelope) { e.Version = 2 }
	for _, c := range []struct {
		name string
		env  saltwire.Envelope
		p    saltwire.Peek
		key  *saltcrypt.PublicKey
		ttl  time.Duration
		want Reason
	}{
		{"good", env(), load(), web.public, 0, ""},
		{"another id inside", env(), load(func(p *saltwire.Peek) { p.ID = "db" }), web.public, 0, ReasonIDMismatch},
		{"no id inside", env(), load(func(p *saltwire.Peek) { p.ID = "" }), web.public, 0, ReasonIDMismatch},
		{"no nonce", env(), load(func(p *saltwire.Peek) { p.Nonce = "" }), web.public, 0, ReasonNonce},
		{"short nonce", env(), load(func(p *saltwire.Peek) { p.Nonce = nonce[1:] }), web.public, 0, ReasonNonce},
		{"nonce with a newline", env(), load(func(p *saltwire.Peek) { p.Nonce = nonce[1:] + "\n" }), web.public, 0,
			ReasonNonce},
		{"old, no limit", env(), load(func(p *saltwire.Peek) { p.TS = 1 }), web.public, 0, ""},
		{"just in time", env(), load(func(p *saltwire.Peek) { p.TS -= 60 }), web.public, time.Minute, ""},
		{"too old", env(), load(func(p *saltwire.Peek) { p.TS -= 61 }), web.public, time.Minute, ReasonExpired},
		{"from the beginning of time", env(), load(func(p *saltwire.Peek) { p.TS = -1 << 62 }), web.public, time.Minute,
			ReasonExpired},
		{"from before all numbers", env(), load(func(p *saltwire.Peek) { p.TS = math.MinInt64 }), web.public, time.Minute,
			ReasonExpired},
		{"from after all numbers", env(), load(func(p *saltwire.Peek) { p.TS = math.MaxInt64 }), web.public, time.Minute, ""},
		{"from the future", env(), load(func(p *saltwire.Peek) { p.TS += 3600 }), web.public, time.Minute, ""},
		{"no time", env(), load(func(p *saltwire.Peek) { p.HasTS = false }), web.public, time.Minute, ReasonNoTimestamp},
		{"no time, no limit", env(), load(func(p *saltwire.Peek) { p.HasTS = false }), web.public, 0, ""},
		{"no token", env(), load(func(p *saltwire.Peek) { p.HasTok, p.Tok = false, nil }), web.public, 0, ReasonNoToken},
		{"empty token", env(), load(func(p *saltwire.Peek) { p.Tok = nil }), web.public, 0, ReasonBadToken},
		{"another minion's token", env(), load(func(p *saltwire.Peek) { p.Tok = other.tok }), web.public, 0, ReasonBadToken},
		{"token over another word", env(), load(func(p *saltwire.Peek) { p.Tok = wrong.tok }), wrong.public, 0,
			ReasonBadToken},
		{"no key", env(), load(), nil, 0, ReasonBadToken},
		{"version 2 without id and token", env(version2),
			load(func(p *saltwire.Peek) { p.ID, p.HasTok, p.Tok = "", false, nil }), web.public, time.Minute, ""},
		{"version 2 with a bad token", env(version2), load(func(p *saltwire.Peek) { p.Tok = other.tok }), web.public, 0,
			ReasonBadToken},
	} {
		g := New(Config{Logger: quiet(), TTL: func() time.Duration { return c.ttl }, Now: func() time.Time { return now }})
		check.Equal(t, reasonOf(g.CheckLoad(c.env, c.p, c.key, remote)), c.want, c.name)
	}
}

func TestTokenCache(t *testing.T) {
	a, b := newMinion(t, "salt"), newMinion(t, "salt")
	c := newTokenCache(2)
	for range 2 {
		if !c.verifyToken("web", a.public, a.tok) {
			t.Fatal("a good token is refused")
		}
	}
	if c.verifyToken("web", b.public, a.tok) {
		t.Error("the token of a former key is good for the present one")
	}
	if !c.verifyToken("web", b.public, b.tok) || c.verifyToken("web", b.public, a.tok) {
		t.Error("a changed key is not followed")
	}
	again, err := saltcrypt.ParsePublicKey(b.public.Text())
	require.NoError(t, err)
	if !c.verifyToken("web", again, b.tok) {
		t.Error("the same key parsed again is another one")
	}
	for i := range 10 {
		c.verifyToken(fmt.Sprint("m", i), a.public, a.tok)
	}
	if len(c.m) != 2 {
		t.Errorf("%d tokens remembered, at most 2", len(c.m))
	}
}

func TestMalformed(t *testing.T) {
	g := New(Config{Logger: quiet()})
	for _, c := range []struct {
		err    error
		want   Reason
		answer []byte
	}{
		{&saltwire.Refused{Reason: saltwire.ReasonEnc}, "enc_is_neither_clear_nor_aes", nil},
		{&saltwire.Refused{Reason: saltwire.ReasonDuplicate, Field: "cmd"}, "duplicate_map_key", saltwire.BadLoad()},
		{&saltwire.Refused{Reason: saltwire.ReasonEncAlgo}, "bad_enc_algo", saltwire.AppendClearRet(nil, "bad enc algo")},
		{fmt.Errorf("auth: %w", &saltwire.Refused{Reason: saltwire.ReasonSigAlgo}), "bad_sig_algo",
			saltwire.AppendClearRet(nil, "bad sig algo")},
		{errors.New("anything"), ReasonMalformed, saltwire.BadLoad()},
	} {
		r := g.Malformed(c.err, remote)
		if r.Reason != c.want || !bytes.Equal(r.Answer, c.answer) {
			t.Errorf("%v: %q %q, want %q %q", c.err, r.Reason, r.Answer, c.want, c.answer)
		}
	}
	if r := g.Refuse(ReasonNotRouted, "web", remote); r.Answer != nil {
		t.Errorf("no master up: answer %q, want none", r.Answer)
	}
	if r := g.Refuse(ReasonNotAuthentic, "web", remote); !bytes.Equal(r.Answer, saltwire.BadLoad()) {
		t.Errorf("not authentic: answer %q", r.Answer)
	}
}

// clock is a time that moves when told to.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func TestRefusalsAreCountedAndLogged(t *testing.T) {
	var out bytes.Buffer
	c := &clock{t: time.Unix(1_700_000_000, 0)}
	reg := prometheus.NewRegistry()
	g := New(Config{Logger: slog.New(slog.NewTextHandler(&out, nil)), Now: c.now, Registerer: reg})
	for range 100 {
		g.Refuse(ReasonNotAuthentic, "web", remote)
	}
	g.Refuse(ReasonNotAuthentic, "web", salthost)
	g.Refuse(ReasonBadToken, strings.Repeat("x", 1000), remote)
	if n := strings.Count(out.String(), "\n"); n != 3 {
		t.Errorf("%d lines for 3 kinds of refusals:\n%s", n, &out)
	}
	if strings.Contains(out.String(), strings.Repeat("x", 256)) {
		t.Error("an id of any length is logged")
	}
	out.Reset()
	c.add(logEvery)
	g.Refuse(ReasonNotAuthentic, "web", remote)
	if !strings.Contains(out.String(), "suppressed=99") || !strings.Contains(out.String(), "reason=not_authentic") {
		t.Errorf("after a while: %q", &out)
	}
	check.Equal(t, testutil.ToFloat64(g.metrics.refused.WithLabelValues("not_authentic")), 102, "counted")
}

func TestLimiter_ManySenders(t *testing.T) {
	c := &clock{t: time.Unix(1_700_000_000, 0)}
	l := newLimiter(c.now)
	logged := 0
	for i := range 100_000 {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if _, ok := l.allowLog(ReasonVersion, addr); ok {
			logged++
		}
	}
	if logged > logSenders+1 || len(l.m) > logSenders+1 {
		t.Errorf("%d lines, %d senders remembered", logged, len(l.m))
	}
	first, second := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	l = newLimiter(c.now)
	l.allowLog(ReasonVersion, first)
	if _, ok := l.allowLog(ReasonVersion, second); ok {
		t.Error("an IPv6 host gets a line per address")
	}
	c.add(2 * logEvery)
	l.dropExpired(c.now())
	if len(l.m) != 0 {
		t.Errorf("%d senders remembered for ever", len(l.m))
	}
}

func BenchmarkCheckLoad(b *testing.B) {
	web := newMinion(b, "salt")
	g := New(Config{Logger: quiet()})
	env := saltwire.Envelope{Enc: "aes", Version: 3, ID: "web"}
	p := saltwire.Peek{Cmd: "_pillar", ID: "web", Nonce: nonce, HasTok: true, Tok: web.tok}
	b.ReportAllocs()
	for b.Loop() {
		if r := g.CheckLoad(env, p, web.public, remote); r != nil {
			b.Fatal(r)
		}
	}
}
