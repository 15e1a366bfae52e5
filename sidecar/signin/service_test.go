package signin

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// cluster is what a Service stands on, with one minion.
type cluster struct {
	mu        sync.Mutex
	standing  Standing
	settled   error
	accept    error
	accepted  []string
	events    []string
	discarded []string
	asked     int
	masterSay []byte
	masterErr error

	identity, minion *saltcrypt.MasterKey
	epochs           *epochs.Manager
	svc              *Service
}

func (c *cluster) Standing(string) Standing {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standing
}
func (c *cluster) Settled(context.Context) error { return c.settled }
func (c *cluster) CatchUp(context.Context) error { return nil }
func (c *cluster) Accept(_ context.Context, id, pub string, _ Standing) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted = append(c.accepted, id)
	if c.accept == nil {
		c.standing = Standing{Pub: pub, Accepted: true, Known: true}
	}
	return c.accept
}
func (c *cluster) Generation() uint64 { return 1 }

func (c *cluster) Session(id, pub string) saltcrypt.Key {
	return saltcrypt.DeriveSession([]byte("seed"), id, pub)
}
func (c *cluster) Ensure(_ string, want saltcrypt.Key) (saltcrypt.Key, bool, error) {
	return want, true, nil
}
func (c *cluster) Discard(id string, key saltcrypt.Key) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.discarded = append(c.discarded, id)
	return nil
}
func (c *cluster) Do(context.Context, []byte) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	return c.masterSay, c.masterErr
}

func newCluster(t testing.TB, change ...func(*Config)) *cluster {
	t.Helper()
	c := &cluster{}
	for _, k := range []**saltcrypt.MasterKey{&c.identity, &c.minion} {
		key, err := saltcrypt.GenerateMasterKey(2048)
		require.NoError(t, err)
		*k = key
	}
	c.epochs = epochs.New(c.identity, time.Now, nil)
	key, err := saltcrypt.NewKey()
	require.NoError(t, err)
	if _, err := c.epochs.Begin(epochs.Epoch{Number: 1, Key: key}, 0); err != nil {
		t.Fatal(err)
	}
	cfg := Config{
		Identity: c.identity, PublishPort: 4505, Epochs: c.epochs, Keys: c, Master: c, Sessions: c,
		Logger: slog.New(slog.DiscardHandler),
		Event:  func(a saltwire.AuthRequest) { c.mu.Lock(); defer c.mu.Unlock(); c.events = append(c.events, a.ID) },
	}
	for _, f := range change {
		f(&cfg)
	}
	c.svc = New(cfg)
	require.NoError(t, c.svc.Open(t.Context()))
	t.Cleanup(func() { c.svc.Close() })
	return c
}

func (c *cluster) request(t testing.TB) saltwire.AuthRequest {
	t.Helper()
	token, err := c.identity.Public().EncryptOAEP(saltcrypt.OAEPSHA224, []byte("the minion's token"))
	require.NoError(t, err)
	return saltwire.AuthRequest{
		ID: "web1", Nonce: "0123456789abcdef0123456789abcdef", Pub: c.minion.PublicText(),
		EncAlgo: saltcrypt.OAEPSHA224, SigAlgo: saltcrypt.PKCS1v15SHA224, Token: token,
	}
}

// answer serves one sign-in and returns the reply, nil when it was dropped.
func (c *cluster) answer(t *testing.T, auth saltwire.AuthRequest) []byte {
	t.Helper()
	return c.answers(t, &Request{Auth: auth})
}

func (c *cluster) answers(t *testing.T, r *Request) []byte {
	t.Helper()
	got := make(chan []byte, 1)
	r.Reply, r.Drop = func(b []byte) { got <- b }, func() { got <- nil }
	r.Gone, r.At = func() bool { return false }, time.Now()
	c.svc.Serve(r)
	select {
	case b := <-got:
		return b
	case <-time.After(30 * time.Second):
		t.Fatal("neither answered nor dropped")
		return nil
	}
}

// checkAccepted verifies a reply as a minion does (salt/crypt.py handle_signin_response).
func (c *cluster) checkAccepted(t *testing.T, body []byte, auth saltwire.AuthRequest) {
	t.Helper()
	r, err := saltwire.ParseAuthReply(body)
	if err != nil || r.Outcome != saltwire.AuthAccepted {
		t.Fatalf("reply %+v, %v", r.Outcome, err)
	}
	check.NoError(t, c.identity.Public().Verify(auth.SigAlgo, r.Load, r.Sig), "outer signature")
	if r.Nonce != auth.Nonce || r.PublishPort != 4505 || r.PubKey != c.identity.PublicText() {
		t.Errorf("nonce %q, port %d", r.Nonce, r.PublishPort)
	}
	for name, f := range map[string]struct{ ct, want []byte }{
		"aes":     {r.AES, []byte(c.epochs.Current().KeyText)},
		"session": {r.Session, []byte(c.Session(auth.ID, auth.Pub).Text())},
		"token":   {r.Token, []byte("the minion's token")},
	} {
		got, err := c.minion.DecryptOAEP(auth.EncAlgo, f.ct)
		if err != nil || !bytes.Equal(got, f.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.identity.Public().VerifyX931(r.SigX931); err != nil {
		t.Errorf("inner signature: %v", err)
	}
}

func TestAcceptedKeyIsAnsweredHere(t *testing.T) {
	c := newCluster(t)
	c.standing = Standing{Pub: c.minion.PublicText() + "\n", Accepted: true, Rev: 3}
	auth := c.request(t)
	c.checkAccepted(t, c.answer(t, auth), auth)
	if c.asked != 0 {
		t.Error("the master was asked")
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // the minion does not wait for its event
		c.mu.Lock()
		n := len(c.events)
		c.mu.Unlock()
		if n == 1 {
			return
		}
		if n > 1 || time.Now().After(end) {
			t.Fatalf("%d events", n)
		}
	}
}

func masterReply(t *testing.T, c *cluster, load []byte) []byte {
	t.Helper()
	sig, err := c.identity.Sign(saltcrypt.PKCS1v15SHA224, load)
	require.NoError(t, err)
	return saltwire.AppendSigned(nil, load, sig)
}

func TestMasterDecidesTheRest(t *testing.T) {
	c := newCluster(t)
	auth := c.request(t)
	accept := saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
		PubKey: c.identity.PublicText(), PublishPort: 4505, Token: []byte("t"), AES: []byte("a"), Session: []byte("s"),
		Sig: []byte("g"), Nonce: auth.Nonce,
	})
	pend := saltwire.AppendAuthRet(nil, true, auth.Nonce)
	reject := saltwire.AppendAuthRet(nil, false, auth.Nonce)
	for _, tc := range []struct {
		name     string
		say      []byte
		err      error
		settled  error
		propose  error
		want     saltwire.AuthOutcome
		dropped  bool
		proposed int
	}{
		{name: "pending is handed on", say: pend, want: saltwire.AuthPending},
		{name: "rejected is handed on", say: reject, want: saltwire.AuthRejected},
		{name: "accepted becomes the cluster's", say: accept, want: saltwire.AuthAccepted, proposed: 1},
		{name: "changed meanwhile stays pending", say: accept, propose: ErrChanged, want: saltwire.AuthPending, proposed: 1},
		{name: "no quorum stays pending", say: accept, propose: ErrNoQuorum, want: saltwire.AuthPending, proposed: 1},
		{name: "our trouble is no answer", say: accept, propose: errors.New("disk"), dropped: true, proposed: 1},
		{name: "a master that is down is no answer", err: errors.New("down"), dropped: true},
		{name: "key files that wait for a quorum stay pending", say: accept, settled: ErrNoQuorum,
			want: saltwire.AuthPending},
		{name: "key files behind consensus are no answer", say: accept, settled: errors.New("behind"), dropped: true},
		{name: "nonsense is no answer", say: []byte{0xc1}, dropped: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c.mu.Lock()
			c.masterSay, c.masterErr, c.settled, c.accept, c.accepted = nil, tc.err, tc.settled, tc.propose, nil
			c.standing = Standing{}
			if tc.say != nil {
				c.masterSay = tc.say
				if tc.say[0] != 0xc1 {
					c.masterSay = masterReply(t, c, tc.say)
				}
			}
			c.mu.Unlock()
			reply := c.answer(t, auth)
			if tc.dropped != (reply == nil) {
				t.Fatalf("dropped %t, want %t", reply == nil, tc.dropped)
			}
			if len(c.accepted) != tc.proposed {
				t.Errorf("proposed %d times, want %d", len(c.accepted), tc.proposed)
			}
			if tc.dropped {
				return
			}
			got, err := saltwire.ParseAuthReply(reply)
			if err != nil || got.Outcome != tc.want {
				t.Fatalf("outcome %v, %v; want %v", got.Outcome, err, tc.want)
			}
			if tc.want == saltwire.AuthAccepted {
				c.checkAccepted(t, reply, auth)
			}
		})
	}
}

// A sign-in with another key for an accepted id is for the master to decide.
func TestService_OtherKeyOfAcceptedID(t *testing.T) {
	c := newCluster(t)
	c.standing = Standing{Pub: c.identity.PublicText(), Accepted: true}
	auth := c.request(t)
	c.masterSay = masterReply(t, c, saltwire.AppendAuthRet(nil, false, auth.Nonce))
	if got, _ := saltwire.ParseAuthReply(c.answer(t, auth)); got.Outcome != saltwire.AuthRejected || c.asked != 1 {
		t.Errorf("outcome %v, asked %d", got.Outcome, c.asked)
	}
}

func TestService_ConnectionGone(t *testing.T) {
	c := newCluster(t)
	c.standing = Standing{Pub: c.minion.PublicText(), Accepted: true}
	dropped := make(chan struct{})
	c.svc.Serve(&Request{
		Auth: c.request(t), Reply: func([]byte) { t.Error("answered") }, Drop: func() { close(dropped) },
		Gone: func() bool { return true }, At: time.Now(),
	})
	select {
	case <-dropped:
	case <-time.After(30 * time.Second):
		t.Fatal("not dropped")
	}
}

// Each of several tries of one sign-in is answered or dropped.
func TestService_ConcurrentTries(t *testing.T) {
	hold := make(chan struct{})
	c := newCluster(t, func(cfg *Config) { cfg.Master = slowMaster{hold} })
	auth := c.request(t)
	const tries = 3
	replies := make(chan []byte, tries)
	for range tries {
		c.svc.Serve(&Request{
			Auth: auth, Reply: func(b []byte) { replies <- b }, Drop: func() { replies <- nil },
			Gone: func() bool { return false }, At: time.Now(),
		})
	}
	close(hold)
	for range tries {
		select {
		case <-replies:
		case <-time.After(30 * time.Second):
			t.Fatal("a try was forgotten")
		}
	}
}

// slowMaster fails after hold is closed.
type slowMaster struct{ hold chan struct{} }

func (s slowMaster) Do(ctx context.Context, _ []byte) ([]byte, error) {
	select {
	case <-s.hold:
	case <-ctx.Done():
	}
	return nil, errors.New("down")
}
