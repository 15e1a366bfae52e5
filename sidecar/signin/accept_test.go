package signin

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// crowd is sign-ins that wait when the service opens.
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
	c.svc.Serve(&Request{Auth: auth, Reply: said, Drop: func() { said(nil) }, Gone: func() bool { return gone },
		At: time.Now()})
}

func (c *crowd) answered(t *testing.T) {
	t.Helper()
	require.NoError(t, c.svc.Open(t.Context()))
	t.Cleanup(func() { c.svc.Close() })
	c.left.Wait()
}

func (c *crowd) sign(t *testing.T, i int) saltwire.AuthRequest {
	auth := c.request(t)
	auth.ID, auth.Nonce = fmt.Sprintf("web%d", i), fmt.Sprintf("%032x", i)
	return auth
}

// TestAccept_Crowd gives each sign-in its own answer: with its token, under its algorithms, under the identity that it
// has pinned.
func TestAccept_Crowd(t *testing.T) {
	second, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	pins := map[string]Pin{}
	c := newCrowd(t, func(cfg *Config) { cfg.Pinned = func(id, _ string, p Pin) { pins[id] = p } })
	c.svc.Answer(&Another{Identity: second})
	sealedTo := func(key *saltcrypt.MasterKey, algo string) []byte {
		token, err := key.Public().EncryptOAEP(algo, []byte("the minion's token"))
		require.NoError(t, err)
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
			a.Token = bytes.Repeat([]byte{0xff}, 256)
		}},
		{name: "that has pinned the other identity", pin: PinAnother, another: true, change: func(a *saltwire.AuthRequest) {
			a.Token = sealedTo(second, a.EncAlgo)
		}},
		{name: "that has hung up", change: func(*saltwire.AuthRequest) {}, gone: true, dropped: true},
		{name: "under an algorithm that nobody knows", change: func(a *saltwire.AuthRequest) { a.SigAlgo = "none" },
			dropped: true, pin: PinOurs},
		{name: "under an encryption that nobody knows", change: func(a *saltwire.AuthRequest) { a.EncAlgo = "none" },
			dropped: true, pin: PinForeign},
	}
	kindOf := func(i int) int { return (i*3 + i/len(kinds)) % len(kinds) } // in other company each time
	var all []saltwire.AuthRequest
	for i := range 5 * len(kinds) {
		auth := c.sign(t, i)
		kinds[kindOf(i)].change(&auth)
		all = append(all, auth)
		c.come(auth, kinds[kindOf(i)].gone)
	}
	c.answered(t)
	for i, auth := range all {
		kind := kinds[kindOf(i)]
		reply := c.replies[auth.Nonce]
		if kind.dropped {
			if reply != nil {
				t.Errorf("%d, one %s: answered", i, kind.name)
			}
			continue
		}
		check.Equal(t, pins[auth.ID], kind.pin, i, "one", kind.name, "pin")
		if kind.pin == PinOurs {
			c.checkAccepted(t, reply, auth)
			continue
		}
		under := c.identity
		if kind.another {
			under = second
		}
		r, err := saltwire.ParseAuthReply(reply)
		if err != nil || r.Outcome != saltwire.AuthAccepted || r.PubKey != under.PublicText() ||
			(len(r.Token) > 0) != kind.another {
			t.Errorf("%d, one %s: %v, %v", i, kind.name, r.Outcome, err)
		}
		check.NoError(t, under.Public().Verify(auth.SigAlgo, r.Load, r.Sig), i, "one", kind.name)
	}
}

// A minion that has shown which identity it has pinned is answered under that one, whatever becomes of it meanwhile:
// under another one it would refuse us.
func TestTheIdentityChangesMeanwhile(t *testing.T) {
	second, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	var svc *Service
	c := newCrowd(t, func(cfg *Config) { cfg.Pinned = func(string, string, Pin) { svc.Answer(nil) } })
	svc = c.svc
	svc.Answer(&Another{Identity: second})
	auth := c.sign(t, 0)
	if auth.Token, err = second.Public().EncryptOAEP(auth.EncAlgo, []byte("the minion's token")); err != nil {
		t.Fatal(err)
	}
	c.come(auth, false)
	c.answered(t)
	r, err := saltwire.ParseAuthReply(c.replies[auth.Nonce])
	if err != nil || r.PubKey != second.PublicText() || len(r.Token) == 0 {
		t.Errorf("%v: answered under another identity than it has pinned (token: %d bytes)", err, len(r.Token))
	}
}

// A token that does not fit into what the minion's key encrypts is left out, as stock does.
func TestTokenTooLong(t *testing.T) {
	large, err := saltcrypt.GenerateMasterKey(3072)
	require.NoError(t, err)
	c := newCrowd(t, func(cfg *Config) { cfg.Identity = large })
	auth := c.sign(t, 0)
	if auth.Token, err = large.Public().EncryptOAEP(auth.EncAlgo, bytes.Repeat([]byte{1}, 300)); err != nil {
		t.Fatal(err)
	}
	c.come(auth, false)
	c.answered(t)
	r, err := saltwire.ParseAuthReply(c.replies[auth.Nonce])
	if err != nil || r.Outcome != saltwire.AuthAccepted || r.Token != nil {
		t.Errorf("%v: %v, with a token of %d bytes", err, r.Outcome, len(r.Token))
	}
}

// withoutEpoch has none in force for one minion.
type withoutEpoch struct {
	*epochs.Manager
	id string
}

func (e withoutEpoch) ForSignIn(id string) *epochs.Material {
	if id == e.id {
		return nil
	}
	return e.Manager.ForSignIn(id)
}

// One that cannot be answered does not keep the others from it.
func TestAccept_OneFails(t *testing.T) {
	c := newCrowd(t, func(cfg *Config) { cfg.Epochs = withoutEpoch{cfg.Epochs.(*epochs.Manager), "web2"} })
	for i := range 8 {
		c.come(c.sign(t, i), false)
	}
	c.answered(t)
	for i := range 8 {
		auth := c.sign(t, i)
		switch reply := c.replies[auth.Nonce]; {
		case i != 2:
			c.checkAccepted(t, reply, auth)
		case reply != nil:
			t.Error("answered without an epoch")
		}
	}
}

// What was given up before it was computed is not counted as accepted.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewRegistry()
		c := newCrowd(t, func(cfg *Config) { cfg.Registerer = reg })
		require.NoError(t, c.svc.Open(t.Context()))
		c.svc.budget.Load().payCost(time.Hour) // nobody's turn comes soon
		for i := range 8 {
			c.come(c.sign(t, i), false)
		}
		synctest.Wait()
		require.NoError(t, c.svc.Close())
		c.left.Wait()
		for nonce, reply := range c.replies {
			if reply != nil {
				t.Errorf("%s was answered", nonce)
			}
		}
		if got := outcomes(t, reg); got["accepted"] > 0 || got["given_up"] == 0 || len(c.events) > 0 {
			t.Errorf("outcomes %v, events %v", got, c.events)
		}
	})
}

func outcomes(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	found, err := reg.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, f := range found {
		if f.GetName() == "saltcluster_signin_requests_total" {
			for _, m := range f.GetMetric() {
				out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// TestAccept_KeyRemoved has the master decide about a minion whose key is no longer accepted when its turn comes.
func TestAccept_KeyRemoved(t *testing.T) {
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
		check.Equal(t, c.replies[fmt.Sprintf("%032x", i)] != nil, (i != 1), "web", i, "answered")
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
