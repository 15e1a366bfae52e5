package herd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// fakeMaster accepts every sign-in and acknowledges every request.
type fakeMaster struct {
	t        *testing.T
	key      *saltcrypt.MasterKey
	req      *edge.ReqEdge
	pub      *edge.PubEdge
	deaf     atomic.Int64 // sign-ins not answered
	pending  atomic.Int64 // sign-ins answered "pending"
	bad      atomic.Int64 // requests answered "bad load"
	signIns  atomic.Int64
	commands sync.Map // command -> *atomic.Int64

	mu       sync.Mutex
	aes      saltcrypt.Key
	sessions map[string]*saltcrypt.Crypticle
	serial   uint64
}

func newFakeMaster(t *testing.T) *fakeMaster {
	t.Helper()
	f := &fakeMaster{t: t, sessions: map[string]*saltcrypt.Crypticle{}}
	var err error
	if f.key, err = saltcrypt.GenerateMasterKey(2048); err != nil {
		t.Fatal(err)
	}
	f.rotate()
	if f.req, err = edge.NewReqEdge(edge.ReqConfig{Addrs: []string{"127.0.0.1:0"}, Handler: f}); err != nil {
		t.Fatal(err)
	}
	f.openPub()
	require.NoError(t, f.req.Open(t.Context()))
	t.Cleanup(func() { f.req.Close(); f.pub.Close() })
	return f
}

func (f *fakeMaster) openPub() {
	f.mu.Lock() // who signs in meanwhile asks for its port
	defer f.mu.Unlock()
	addr := "127.0.0.1:0"
	if f.pub != nil {
		addr = f.pub.Addr()[0].String()
		f.pub.Close()
	}
	var err error
	if f.pub, err = edge.NewPubEdge(edge.PubConfig{Addrs: []string{addr}}); err != nil {
		f.t.Fatal(err)
	}
	require.NoError(f.t, f.pub.Open(f.t.Context()))
}

func (f *fakeMaster) rotate() {
	key, err := saltcrypt.NewKey()
	require.NoError(f.t, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.aes, f.serial = key, 0
}

func port(a net.Addr) int {
	_, p, _ := net.SplitHostPort(a.String())
	n, _ := strconv.Atoi(p)
	return n
}

func (f *fakeMaster) ServeReq(_ context.Context, r *edge.Request) {
	env, err := saltwire.ParseEnvelope(r.Body)
	if err != nil {
		f.t.Error(err)
		r.Drop()
		return
	}
	if env.Enc == saltwire.EncClear {
		f.signIn(r, env.Load)
		return
	}
	f.mu.Lock()
	session := f.sessions[env.ID]
	f.mu.Unlock()
	plain, err := session.Open(nil, env.Load)
	if err != nil || f.bad.Add(-1) >= 0 {
		r.Reply(saltwire.BadLoad())
		return
	}
	p, err := saltwire.PeekLoad(plain)
	check.NoError(f.t, err)
	n, _ := f.commands.LoadOrStore(p.Cmd, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
	r.Reply(saltwire.AppendRaw(nil, session.Seal(nil, saltwire.AppendNil(nil), []byte(p.Nonce))))
}

func (f *fakeMaster) count(cmd string) int64 {
	n, ok := f.commands.Load(cmd)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

func (f *fakeMaster) signIn(r *edge.Request, load []byte) {
	req, err := saltwire.ParseAuth(load)
	check.NoError(f.t, err)
	if f.deaf.Add(-1) >= 0 {
		return
	}
	inner := saltwire.AppendAuthRet(nil, true, req.Nonce)
	if f.pending.Add(-1) < 0 {
		f.signIns.Add(1)
		inner = f.accept(req)
	}
	sig, err := f.key.Sign(req.SigAlgo, inner)
	check.NoError(f.t, err)
	r.Reply(saltwire.AppendSigned(nil, inner, sig))
}

func (f *fakeMaster) accept(req saltwire.AuthRequest) []byte {
	pub, err := saltcrypt.ParsePublicKey(req.Pub)
	check.NoError(f.t, err)
	session := saltcrypt.DeriveSession([]byte("seed"), req.ID, req.Pub) // the same for each try
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[req.ID] = saltcrypt.NewCrypticle(session)
	a := saltwire.AuthAccept{PubKey: f.key.PublicText(), PublishPort: port(f.pub.Addr()[0]), Nonce: req.Nonce}
	if req.Token != nil {
		token, err := f.key.DecryptOAEP(req.EncAlgo, req.Token)
		check.NoError(f.t, err)
		a.Token, _ = pub.EncryptOAEP(req.EncAlgo, token)
	}
	sum := sha256.Sum256([]byte(f.aes.Text()))
	a.AES, _ = pub.EncryptOAEP(req.EncAlgo, []byte(f.aes.Text()))
	a.Session, _ = pub.EncryptOAEP(req.EncAlgo, []byte(session.Text()))
	a.Sig, _ = f.key.SignX931([]byte(hex.EncodeToString(sum[:])))
	return saltwire.AppendAuthAccept(nil, a)
}

// publish publishes test.ping and returns the jid.
func (f *fakeMaster) publish(n int, tgt string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.serial++
	jid := fmt.Sprintf("20261121%012d", n)
	plain, err := saltwire.AppendAny(nil, map[string]any{
		"fun": "test.ping", "arg": []any{}, "tgt": tgt, "tgt_type": "glob", "jid": jid, "ret": "", "user": "root",
		"serial": int64(f.serial),
	}, saltwire.Wire)
	require.NoError(f.t, err)
	sealed := saltcrypt.NewCrypticle(f.aes).Seal(nil, plain, nil)
	sig, err := f.key.Sign(saltcrypt.PKCS1v15SHA1, sealed)
	require.NoError(f.t, err)
	f.pub.Publish(edge.Publication{Body: saltwire.AppendPub(nil, sealed, sig, saltcrypt.PKCS1v15SHA1)})
	return jid
}

// hurried are profiles of all versions with short times.
func hurried(t *testing.T) (all []Profile) {
	t.Helper()
	for _, v := range []string{"3006.28", "3007.15", "3008.3"} {
		p, err := ProfileOf(v)
		require.NoError(t, err)
		p.AuthTimeout, p.AcceptanceWait, p.ReauthDelay = 10*time.Second, 50*time.Millisecond, time.Second
		p.ReconDefault, p.ReconMax = 20*time.Millisecond, 200*time.Millisecond
		all = append(all, p)
	}
	return all
}

const few = 30

// impatient gives up a try that is not answered at once.
func impatient(c *Config, timeout time.Duration) {
	for i := range c.Profiles {
		c.Profiles[i].AuthTimeout = timeout
	}
}

// newHerd is few minions of three versions, all subscribed.
func newHerd(t *testing.T, f *fakeMaster, change func(*Config)) *Herd {
	t.Helper()
	cfg := Config{
		Host: "127.0.0.1", ReqPort: port(f.req.Addr()[0]), Profiles: hurried(t), Minions: few, Announce: true,
		KeepRequests: true,
	}
	if change != nil {
		change(&cfg)
	}
	h, err := New(cfg)
	require.NoError(t, err)
	h.Open(t.Context())
	t.Cleanup(func() {
		h.Close()
		if s := h.Stats(); s.Subscribed != 0 || s.SigningIn != 0 {
			t.Errorf("after Close: %+v", s)
		}
	})
	patience.WaitFor(t, "all are subscribed", func() bool {
		return f.pub.Stats().Subscribers == few && h.Stats().Subscribed == few
	})
	return h
}

func answered(t *testing.T, h *Herd, jid string) {
	t.Helper()
	patience.WaitFor(t, "all have answered "+jid, func() bool { return h.Job(jid).Acked == few })
	if j := h.Job(jid); j.Heard != few || len(h.Missed(jid)) != 0 {
		t.Errorf("%+v", j)
	}
}

func TestHerdHearsAndReturns(t *testing.T) {
	for _, keep := range []bool{true, false} {
		f := newFakeMaster(t)
		h := newHerd(t, f, func(c *Config) { c.KeepRequests = keep })
		answered(t, h, f.publish(1, "*"))
		f.publish(2, "nobody")
		answered(t, h, f.publish(3, "herd*"))
		patience.WaitFor(t, "all are announced", func() bool {
			return f.count("_minion_event") == few && f.count("_register_resources") == few/3
		})
		if err := h.Stats().Err(); err != nil || f.count("_return") != 2*few || h.Stats().SignIns != few ||
			h.Job("20261121000000000002").Heard != 0 {
			t.Errorf("%v, %d returns, %d sign-ins", err, f.count("_return"), f.signIns.Load())
		}
	}
}

func TestHerd_SignInWhenUnreadable(t *testing.T) {
	f := newFakeMaster(t)
	h := newHerd(t, f, nil)
	f.rotate()
	answered(t, h, f.publish(1, "*"))
	answered(t, h, f.publish(2, "*"))
	if s := h.Stats(); s.SignIns != 2*few || s.Unreadable != few || s.Discarded != 0 || s.Err() != nil {
		t.Errorf("%d sign-ins, %+v", f.signIns.Load(), s)
	}
}

func TestHerdTriesAgain(t *testing.T) {
	f := newFakeMaster(t)
	f.deaf.Store(few)
	f.pending.Store(few)
	h := newHerd(t, f, func(c *Config) { impatient(c, 2*time.Second) })
	// who is impatient may miss being told to wait
	if s := h.Stats(); s.SignInTries <= 2*few || s.Pended == 0 || s.Pended > few ||
		s.SignInFailed != 0 {
		t.Errorf("%+v", s)
	}
	f.bad.Store(5)
	answered(t, h, f.publish(1, "*"))
	if s := h.Stats(); s.BadLoads < 4 || s.Err() != nil {
		t.Errorf("%+v", s)
	}
}

func TestHerd_RestartAfterFailedSignIn(t *testing.T) {
	f := newFakeMaster(t)
	f.deaf.Store(7)
	h := newHerd(t, f, func(c *Config) { impatient(c, 200*time.Millisecond); c.AtATime = 1 })
	if s := h.Stats(); s.SignInFailed < 1 || s.Restarts != s.SignInFailed || s.SignIns != few {
		t.Errorf("%+v", s)
	}
}

// A broken 4505 makes minions of 3007 and 3008 sign in, those of 3006 only connect.
func TestHerdComesBack(t *testing.T) {
	f := newFakeMaster(t)
	h := newHerd(t, f, nil)
	f.openPub()
	patience.WaitFor(t, "all are back", func() bool { return f.pub.Stats().Subscribers == few && h.Stats().Subscribed == few })
	answered(t, h, f.publish(1, "*"))
	if s := h.Stats(); s.SignIns != few+few*2/3 || len(s.Outages) != few || s.Err() != nil {
		t.Errorf("%d sign-ins, %+v", f.signIns.Load(), s)
	}
}

// What a minion must not believe is found.
func TestHerdComplains(t *testing.T) {
	f := newFakeMaster(t)
	h := newHerd(t, f, nil)
	f.publish(1, "*")
	f.mu.Lock()
	f.serial = 0
	f.mu.Unlock()
	f.publish(2, "*")
	patience.WaitFor(t, "the replayed serial is seen", func() bool { return h.Stats().Stale == few })
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	f.key = key
	f.publish(3, "*")
	patience.WaitFor(t, "the signature is seen", func() bool { return len(h.Stats().Wrong) > 0 })
}
