package signin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// offer serves a sign-in whose end is told to ends.
func (c *cluster) offer(who string, auth saltwire.AuthRequest, ends chan string) {
	c.svc.Serve(&Request{
		Auth: auth, Reply: func([]byte) { ends <- who }, Drop: func() { ends <- who },
		Gone: func() bool { return false }, At: time.Now(),
	})
}

// One minion that signs in over and over takes its share of the queue; the others find room.
func TestQueue_ShareOfOneMinion(t *testing.T) {
	t.Run("saying the same", func(t *testing.T) { oneMinion(t, func(pub string, _ int) string { return pub }) })
	t.Run("writing its key in many ways", func(t *testing.T) {
		oneMinion(t, func(pub string, i int) string { return strings.Repeat(" ", i) + pub + strings.Repeat("\r\n", i%7) })
	})
}

func oneMinion(t *testing.T, write func(pub string, i int) string) {
	hold := make(chan struct{})
	c := newCluster(t, func(cfg *Config) { cfg.Master, cfg.Queue = slowMaster{hold}, 64 })
	ends := make(chan string, 128)
	auth := c.request(t)
	for i := range 100 {
		auth.Nonce, auth.Pub = fmt.Sprintf("%032d", i), write(c.minion.PublicText(), i)
		c.offer("greedy", auth, ends)
	}
	if n := len(ends); n != 100-maxShare {
		t.Errorf("%d of 100 sign-ins given up at once, want %d", n, 100-maxShare)
	}
	for len(ends) > 0 {
		<-ends
	}
	auth.ID = "web2"
	c.offer("other", auth, ends)
	auth.ID, auth.Pub = "web1", c.identity.PublicText() // who only knows the name is counted apart
	c.offer("stranger", auth, ends)
	close(hold)
	got := map[string]int{}
	for range maxShare + 2 {
		select {
		case who := <-ends:
			got[who]++
		case <-time.After(30 * time.Second):
			t.Fatal("a sign-in was forgotten")
		}
	}
	if got["greedy"] != maxShare || got["other"] != 1 || got["stranger"] != 1 {
		t.Errorf("ended: %v", got)
	}
	c.svc.queue.mu.Lock()
	defer c.svc.queue.mu.Unlock()
	if q := c.svc.queue; len(q.parts) != 0 || q.count != 0 {
		t.Errorf("%d parties, %d sign-ins are remembered", len(q.parts), q.count)
	}
}

// New minions beyond the limit hear "pending" and leave nothing behind; those that are known are not concerned.
func TestNewcomersAreHeldBack(t *testing.T) {
	c := newCluster(t, func(cfg *Config) { cfg.Newcomers = Newcomers{MaxPending: 10, Pending: func() int { return 10 }} })
	auth := c.request(t)
	is := func(st Standing) { c.mu.Lock(); c.standing = st; c.mu.Unlock() }
	say := func(outcome saltwire.AuthOutcome, asked int) {
		t.Helper()
		r, err := saltwire.ParseAuthReply(c.answer(t, auth))
		if err != nil || r.Outcome != outcome || c.asked != asked {
			t.Fatalf("outcome %v, %v; the master was asked %d times", r.Outcome, err, c.asked)
		}
	}
	say(saltwire.AuthPending, 0)
	c.masterSay = masterReply(t, c, saltwire.AppendAuthRet(nil, true, auth.Nonce))
	is(Standing{Known: true, Pub: auth.Pub})
	say(saltwire.AuthPending, 1)
	is(Standing{Known: true, Pub: c.identity.PublicText(), Accepted: true}) // another key: "pending" would be wrong
	if c.answer(t, auth) != nil || c.asked != 1 {
		t.Errorf("answered; the master was asked %d times", c.asked)
	}
	is(Standing{Known: true, Pub: auth.Pub, Accepted: true})
	say(saltwire.AuthAccepted, 1)
}

// A key that waits for acceptance, or was rejected, and signs in without end keeps the master's workers busy at a rate
// only. It hears "pending" as long as that is so.
func TestRepeatedSignInsAreLimited(t *testing.T) {
	for _, pending := range []bool{true, false} {
		c := newCluster(t, func(cfg *Config) { cfg.Newcomers = Newcomers{Rate: 0.1} })
		auth := c.request(t)
		c.masterSay = masterReply(t, c, saltwire.AppendAuthRet(nil, true, auth.Nonce))
		c.mu.Lock()
		c.standing = Standing{Known: true, Pub: auth.Pub, Pending: pending}
		c.mu.Unlock()
		const burst = newcomerBurst / 10
		for i := range 3 * burst {
			answer := c.answer(t, auth)
			if i < burst || pending {
				if r, err := saltwire.ParseAuthReply(answer); err != nil || r.Outcome != saltwire.AuthPending {
					t.Fatalf("pending %v, try %d: %v, %v", pending, i, r.Outcome, err)
				}
			} else if answer != nil && c.asked < i {
				t.Errorf("a rejected key is answered without the master")
			}
		}
		if c.asked < burst || c.asked > 2*burst {
			t.Errorf("pending %v: the master was asked %d times", pending, c.asked)
		}
		c.mu.Lock()
		c.standing = Standing{Known: true, Pub: auth.Pub, Accepted: true}
		c.mu.Unlock()
		if r, err := saltwire.ParseAuthReply(c.answer(t, auth)); err != nil || r.Outcome != saltwire.AuthAccepted {
			t.Errorf("once it is accepted: %v, %v", r.Outcome, err)
		}
	}
}

// A sign-in that is not accepted leaves no session file behind; one of an accepted minion is never touched.
func TestService_DiscardSession(t *testing.T) {
	c := newCluster(t)
	auth := c.request(t)
	say := func(load []byte) []byte { return masterReply(t, c, load) }
	accept := saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
		PubKey: c.identity.PublicText(), PublishPort: 4505, Token: []byte("t"), AES: []byte("a"), Session: []byte("s"),
		Sig: []byte("g"), Nonce: auth.Nonce,
	})
	for _, tc := range []struct {
		name     string
		say      []byte
		err      error
		propose  error
		standing Standing
		discards bool
	}{
		{name: "pending", say: say(saltwire.AppendAuthRet(nil, true, auth.Nonce)), discards: true},
		{name: "rejected", say: say(saltwire.AppendAuthRet(nil, false, auth.Nonce)), discards: true},
		{name: "full", say: say(saltwire.AppendAuthRet(nil, "full", auth.Nonce)), discards: true},
		{name: "no master", err: errors.New("down"), discards: true},
		{name: "accepted", say: say(accept)},
		{name: "accepted, but not by the cluster yet", say: say(accept), propose: ErrNoQuorum},
		{
			name: "another key for an accepted id", say: say(saltwire.AppendAuthRet(nil, false, auth.Nonce)),
			standing: Standing{Pub: c.identity.PublicText(), Accepted: true},
		},
	} {
		c.mu.Lock()
		c.masterSay, c.masterErr, c.accept, c.standing, c.discarded = tc.say, tc.err, tc.propose, tc.standing, nil
		c.mu.Unlock()
		c.answer(t, auth)
		c.mu.Lock()
		if got := slices.Contains(c.discarded, auth.ID); got != tc.discards {
			t.Errorf("%s: session discarded %t, want %t", tc.name, got, tc.discards)
		}
		c.mu.Unlock()
	}
}
