package signin

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/saltwire"
)

// peers are nodes "b" and "c".
type peers struct {
	here   bool // our own master is to be asked
	others []node.ID

	mu     sync.Mutex
	say    map[node.ID][]byte // nil: an error
	accept func()             // what an accepting peer does before
	asked  []node.ID
	body   string
	remote netip.AddrPort
	left   time.Duration // how long the last one had
}

func (p *peers) way(string) (bool, []node.ID) { return p.here, p.others }

func (p *peers) SignIn(ctx context.Context, to node.ID, body []byte, remote netip.AddrPort) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked, p.body, p.remote = append(p.asked, to), string(body), remote
	if end, ok := ctx.Deadline(); ok {
		p.left = time.Until(end)
	}
	if p.accept != nil {
		p.accept()
	}
	if p.say[to] == nil {
		return nil, errors.New("no answer")
	}
	return p.say[to], nil
}

func TestService_AskPeers(t *testing.T) {
	p := &peers{}
	c := newCluster(t, func(cfg *Config) { cfg.Way, cfg.Peers = p.way, p })
	auth := c.request(t)
	pend := masterReply(t, c, saltwire.AppendAuthRet(nil, true, auth.Nonce))
	reject := masterReply(t, c, saltwire.AppendAuthRet(nil, false, auth.Nonce))
	full := masterReply(t, c, saltwire.AppendAuthRet(nil, "full", auth.Nonce))
	accept := masterReply(t, c, saltwire.AppendAuthAccept(nil, saltwire.AuthAccept{
		PubKey: c.identity.PublicText(), PublishPort: 9999, AES: []byte("a"), Session: []byte("s"), Sig: []byte("g"),
		Nonce: auth.Nonce,
	}))
	mine := Standing{Pub: auth.Pub, Known: true, Accepted: true}
	both := []node.ID{"b", "c"}
	for _, tc := range []struct {
		name    string
		here    bool
		others  []node.ID
		relayed bool
		master  []byte // nil: it does not answer
		settled error
		say     map[node.ID][]byte
		known   Standing // once a peer was asked
		asked   []node.ID
		own     int // how often our own master was
		want    saltwire.AuthOutcome
		silent  bool
	}{
		{name: "our master can", here: true, others: both, master: pend, own: 1, want: saltwire.AuthPending},
		{name: "it is away", others: both, say: map[node.ID][]byte{"b": pend}, asked: both[:1], want: saltwire.AuthPending},
		{name: "it breaks off", here: true, others: both, say: map[node.ID][]byte{"b": pend}, asked: both[:1], own: 1,
			want: saltwire.AuthPending},
		{
			name: "its key files hang", here: true, others: both, master: reject, settled: errors.New("slow"),
			say: map[node.ID][]byte{"b": full}, asked: both[:1], want: saltwire.AuthFull,
		},
		{name: "a peer rejects", others: both, say: map[node.ID][]byte{"b": reject}, asked: both[:1],
			want: saltwire.AuthRejected},
		{name: "the first peer does not answer", others: both, say: map[node.ID][]byte{"c": pend}, asked: both,
			want: saltwire.AuthPending},
		{
			name: "the first peer refuses", others: both, say: map[node.ID][]byte{"b": saltwire.BadLoad(), "c": pend},
			asked: both,
			want:  saltwire.AuthPending,
		},
		{
			name: "the first peer talks nonsense", others: both, say: map[node.ID][]byte{"b": {0xc1}, "c": pend}, asked: both,
			want: saltwire.AuthPending,
		},
		{name: "nobody can", here: true, others: both, asked: both, own: 1, silent: true},
		{name: "nobody is there", here: true, own: 1, silent: true},
		{name: "nobody is to be asked", silent: true},
		{
			name: "a peer accepts", others: both, say: map[node.ID][]byte{"b": accept}, known: mine, asked: both[:1],
			want: saltwire.AuthAccepted,
		},
		{name: "a peer accepts, the cluster does not", others: both, say: map[node.ID][]byte{"b": accept}, asked: both[:1],
			want: saltwire.AuthPending},
		{
			name: "a peer accepts, the cluster another key", others: both, say: map[node.ID][]byte{"b": accept},
			known: Standing{Pub: c.identity.PublicText(), Known: true, Accepted: true}, asked: both[:1],
			want: saltwire.AuthPending,
		},
		{name: "a peer's ends here", others: both, relayed: true, master: pend, own: 1, want: saltwire.AuthPending},
		{name: "a peer's ends here, too", here: true, others: both, relayed: true, own: 1, silent: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p.mu.Lock()
			p.here, p.others, p.say, p.asked = tc.here, tc.others, tc.say, nil
			p.accept = func() { c.mu.Lock(); c.standing = tc.known; c.mu.Unlock() }
			p.mu.Unlock()
			c.mu.Lock()
			c.masterSay, c.masterErr, c.settled, c.asked, c.standing, c.events = tc.master, nil, tc.settled, 0, Standing{}, nil
			if tc.master == nil {
				c.masterErr = errors.New("down")
			}
			c.mu.Unlock()
			remote := netip.MustParseAddrPort("192.0.2.7:1234")
			reply := c.answers(t, &Request{Auth: auth, Raw: []byte("as it came"), Remote: remote, Relayed: tc.relayed})
			if !slices.Equal(p.asked, tc.asked) || c.asked != tc.own {
				t.Errorf("asked %v, our own master %d times", p.asked, c.asked)
			}
			if len(p.asked) > 0 && (p.body != "as it came" || p.remote != remote) {
				t.Errorf("handed over %q from %v", p.body, p.remote)
			}
			if tc.silent != (reply == nil) {
				t.Fatalf("silent %t", reply == nil)
			}
			if tc.silent {
				return
			}
			got, err := saltwire.ParseAuthReply(reply)
			if err != nil || got.Outcome != tc.want {
				t.Fatalf("outcome %v, %v; want %v", got.Outcome, err, tc.want)
			}
			if tc.want == saltwire.AuthAccepted {
				c.checkAccepted(t, reply, auth) // our port, our keys
				c.mu.Lock()
				defer c.mu.Unlock()
				check.Equal(t, len(c.events), 0, "the event fired here, too")
			}
		})
	}
}

// A peer has half of the time that is left, so that there is some for the next.
func TestPeersShareTheTime(t *testing.T) {
	p := &peers{}
	s := &Service{cfg: Config{Peers: p}}
	for _, tc := range []struct{ left, most time.Duration }{
		{time.Hour, time.Hour / 2},
		{peerTimeout / 2, peerTimeout / 2},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), tc.left)
		_, _, _ = s.relayTo(ctx, "b", &Request{})
		cancel()
		if p.left > tc.most || p.left > tc.left {
			t.Errorf("of %s it had %s", tc.left, p.left)
		}
	}
}

// Peers cannot fill this node, however many sign-ins they hand over.
func TestRelayLimit_PartOfTheRoom(t *testing.T) {
	at := time.Unix(1000, 0)
	g := newRelayLimit(func() time.Time { return at })
	var inside []*Request
	ended := 0
	enter := func() bool {
		r := &Request{Reply: func([]byte) { ended++ }, Drop: func() { ended++ }}
		if !g.admitRelayed(r) {
			return false
		}
		inside = append(inside, r)
		return true
	}
	for enter() {
	}
	if len(inside) != maxRelayed {
		t.Errorf("%d at a time", len(inside))
	}
	inside[0].Reply(nil)
	inside[1].Drop()
	if g.inside != maxRelayed-2 || ended != 2 {
		t.Errorf("%d inside, %d ended", g.inside, ended)
	}
	inside = nil
	for g.inside = 0; enter(); g.inside = 0 {
	}
	if n := len(inside) + maxRelayed; n != relayedBurst {
		t.Errorf("%d at once", n)
	}
	at, inside = at.Add(time.Second), nil
	for ; enter(); g.inside = 0 {
	}
	check.Equal(t, len(inside), relayedRate, "a second later")
}

func TestRelayLimit_DropsExcess(t *testing.T) {
	c := newCluster(t)
	c.svc.relayLimit.mu.Lock()
	c.svc.relayLimit.inside = maxRelayed
	c.svc.relayLimit.mu.Unlock()
	c.standing = Standing{Pub: c.minion.PublicText(), Known: true, Accepted: true}
	if c.answers(t, &Request{Auth: c.request(t), Relayed: true}) != nil {
		t.Error("a guest found room")
	}
	if c.answers(t, &Request{Auth: c.request(t)}) == nil {
		t.Error("a minion of our own did not")
	}
}
