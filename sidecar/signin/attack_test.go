package signin

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// One minion that signs in over and over takes its share of the queue; the others find room.
func TestOneMinionCannotFillTheQueue(t *testing.T) {
	hold := make(chan struct{})
	c := newCluster(t, func(cfg *Config) { cfg.Master, cfg.Workers, cfg.Queue = slowMaster{hold}, 1, 64 })
	ends := make(chan string, 128)
	serve := func(who string, auth saltwire.AuthRequest) {
		c.svc.Serve(&Request{
			Auth: auth, Reply: func([]byte) { ends <- who }, Drop: func() { ends <- who },
			Gone: func() bool { return false }, At: time.Now(),
		})
	}
	auth := c.request(t)
	for i := range 100 {
		auth.Nonce = fmt.Sprintf("%032d", i)
		serve("greedy", auth)
	}
	if n := len(ends); n != 100-maxShare {
		t.Errorf("%d of 100 sign-ins refused at once, want %d", n, 100-maxShare)
	}
	for len(ends) > 0 {
		<-ends
	}
	auth.ID = "web2"
	serve("other", auth)
	auth.ID, auth.Pub = "web1", c.identity.PublicText() // who only knows the name is counted apart
	serve("stranger", auth)
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
	if n := func() int { c.svc.mu.Lock(); defer c.svc.mu.Unlock(); return len(c.svc.share) }(); n != 0 {
		t.Errorf("%d parties are remembered", n)
	}
}

// A sign-in that is not accepted leaves no session file behind; one of an accepted minion is never touched.
func TestUnacceptedSignInLeavesNoSession(t *testing.T) {
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
