package signin

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// crowd is sign-ins that wait when the service opens, so that it answers as many together as it can.
type crowd struct {
	*cluster
	svc *Service

	mu      sync.Mutex
	replies map[string][]byte // by nonce; nil: dropped
	left    sync.WaitGroup
}

func newCrowd(t *testing.T, change ...func(*Config)) *crowd {
	c := &crowd{cluster: newCluster(t), replies: map[string][]byte{}}
	c.standing = Standing{Pub: c.minion.PublicText(), Accepted: true, Known: true}
	cfg := c.cluster.svc.cfg
	cfg.CPUs, cfg.Share = 1, 1 // one worker
	for _, f := range change {
		f(&cfg)
	}
	c.svc = New(cfg)
	return c
}

func (c *crowd) come(auth saltwire.AuthRequest, gone bool) {
	c.left.Add(1)
	said := func(reply []byte) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.replies[auth.Nonce] = reply
		c.left.Done()
	}
	c.svc.Serve(&Request{Auth: auth, Reply: said, Drop: func() { said(nil) }, Gone: func() bool { return gone }, At: time.Now()})
}

func (c *crowd) answered(t *testing.T) {
	t.Helper()
	if err := c.svc.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.svc.Close() })
	c.left.Wait()
}

func (c *crowd) sign(t *testing.T, i int) saltwire.AuthRequest {
	auth := c.request(t)
	auth.ID, auth.Nonce = fmt.Sprintf("web%d", i), fmt.Sprintf("%032x", i)
	return auth
}

// Each of those that are answered together gets its own answer: with its token, under its algorithms, under the identity that it has pinned.
func TestTogether(t *testing.T) {
	second, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		t.Fatal(err)
	}
	pins := map[string]Pin{}
	c := newCrowd(t, func(cfg *Config) { cfg.Pinned = func(id, _ string, p Pin) { pins[id] = p } })
	c.svc.Answer(&Another{Identity: second})
	sealedTo := func(key *saltcrypt.MasterKey, algo string) []byte {
		token, err := key.Public().EncryptOAEP(algo, []byte("the minion's token"))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	kinds := []struct {
		name    string
		change  func(*saltwire.AuthRequest)
		pin     Pin
		another bool
		gone    bool
		dropped bool
	}{
		{name: "ordinary", change: func(*saltwire.AuthRequest) {}, pin: PinOurs},
		{name: "of 3006", pin: PinOurs, change: func(a *saltwire.AuthRequest) {
			a.EncAlgo, a.SigAlgo = saltcrypt.OAEPSHA1, saltcrypt.PKCS1v15SHA1
			a.Token = sealedTo(c.identity, a.EncAlgo)
		}},
		{name: "without a token", change: func(a *saltwire.AuthRequest) { a.Token = nil }, pin: PinNone},
		{name: "with a short token", change: func(a *saltwire.AuthRequest) { a.Token = a.Token[:100] }, pin: PinForeign},
		{name: "with a token of ones", pin: PinForeign, change: func(a *saltwire.AuthRequest) {
			a.Token = []byte(fmt.Sprintf("%256s", "\xff"))
			for i := range a.Token {
				a.Token[i] = 0xff
			}
		}},
		{name: "that has pinned the other identity", pin: PinAnother, another: true, change: func(a *saltwire.AuthRequest) {
			a.Token = sealedTo(second, a.EncAlgo)
		}},
		{name: "that has hung up", change: func(*saltwire.AuthRequest) {}, gone: true, dropped: true},
		{name: "under an algorithm that nobody knows", change: func(a *saltwire.AuthRequest) { a.SigAlgo = "none" }, dropped: true, pin: PinOurs},
	}
	var all []saltwire.AuthRequest
	for i := range 5 * len(kinds) {
		auth := c.sign(t, i)
		kinds[(i*3+i/len(kinds))%len(kinds)].change(&auth)
		all = append(all, auth)
		c.come(auth, kinds[(i*3+i/len(kinds))%len(kinds)].gone)
	}
	c.answered(t)
	for i, auth := range all {
		kind := kinds[(i*3+i/len(kinds))%len(kinds)]
		reply := c.replies[auth.Nonce]
		if kind.dropped {
			if reply != nil {
				t.Errorf("%d, one %s: answered", i, kind.name)
			}
			continue
		}
		if got := pins[auth.ID]; got != kind.pin {
			t.Errorf("%d, one %s: pin %d, want %d", i, kind.name, got, kind.pin)
		}
		if kind.pin == PinOurs {
			c.checkAccepted(t, reply, auth)
			continue
		}
		under := c.identity
		if kind.another {
			under = second
		}
		r, err := saltwire.ParseAuthReply(reply)
		if err != nil || r.Outcome != saltwire.AuthAccepted || r.PubKey != under.PublicText() || (len(r.Token) > 0) != kind.another {
			t.Errorf("%d, one %s: %v, %v", i, kind.name, r.Outcome, err)
		}
		if err := under.Public().Verify(auth.SigAlgo, r.Load, r.Sig); err != nil {
			t.Errorf("%d, one %s: %v", i, kind.name, err)
		}
	}
}

// One whose key is accepted no more when its turn comes is not answered together with those whose keys are: the master decides.
func TestTogetherLooksAgain(t *testing.T) {
	c := newCrowd(t)
	for i := range 3 {
		c.come(c.sign(t, i), false)
	}
	c.mu.Lock()
	c.masterErr = fmt.Errorf("down")
	c.mu.Unlock()
	c.svc.cfg.Keys = removed{c.cluster, "web1"}
	c.answered(t)
	for i := range 3 {
		if got := c.replies[fmt.Sprintf("%032x", i)] != nil; got != (i != 1) {
			t.Errorf("web%d: answered %t", i, got)
		}
	}
	if c.asked == 0 {
		t.Error("the master was not asked")
	}
}

// removed is a cluster that does not know a minion any more.
type removed struct {
	*cluster
	id string
}

func (r removed) Standing(id string) Standing {
	if id == r.id {
		return Standing{}
	}
	return r.cluster.Standing(id)
}
