package fanout

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
)

// peerSide is a receiving node: its inbox behind a real HTTP/2 server.
type peerSide struct {
	beats beats
	in    *inbox
	srv   *httptest.Server
	epoch atomic.Uint64

	mu     sync.Mutex
	got    []string
	starts []late.Start
	ages   []time.Duration
	own    []string // and for how long it has been published
	ownAge []time.Duration
}

func (p *peerSide) earlierPublication(pub Publication, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = append(p.own, string(pub.Plain))
	p.ownAge = append(p.ownAge, time.Since(at))
}

func (p *peerSide) remotePublication(origin node.ID, pub Publication, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, string(origin)+":"+string(pub.Plain))
	p.ages = append(p.ages, time.Since(at))
}

func (p *peerSide) remoteStart(s late.Start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts = append(p.starts, s)
}

func (p *peerSide) stoodStill() {}

func (p *peerSide) remoteSignIn(id string, epoch uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, fmt.Sprintf("%s/%d", id, epoch))
}

func (p *peerSide) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.got)
}

func newPeerSide(t *testing.T) *peerSide {
	t.Helper()
	p := &peerSide{beats: newBeats(time.Now)}
	p.in = &inbox{
		gate: newGate(),
		from: func(context.Context) (node.ID, bool) { return "a", true }, clock: hlc.New(time.Now, 0), sink: p,
		epoch: p.epoch.Load, beats: &p.beats, ended: neverEnded, log: slog.New(slog.DiscardHandler),
		origins: map[node.ID]*origin{}, since: time.Now(),
	}
	p.srv = httptest.NewUnstartedServer(p.in)
	p.srv.EnableHTTP2 = true
	p.srv.StartTLS()
	t.Cleanup(p.srv.Close)
	return p
}

// client dials the peer's server whatever the URL's host is, as the peer port does with node ids.
func (p *peerSide) client() *http.Client {
	base := &http.Transport{ForceAttemptHTTP2: true}
	base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.srv.Listener.Addr().String())
	}
	base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return &http.Client{Transport: base}
}

// link is the link of node a to p.
func (p *peerSide) link(out *outbox, run string) *link {
	return &link{
		peer: "b", run: run, client: p.client(), out: out, clock: hlc.New(time.Now, 0),
		log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil),
		ways:    direct{},
		dialled: func(error) {},
		beat:    func() beat { return beat{stamp: 5, echo: p.beats.base} },
		starts:  func() []late.Start { return []late.Start{{ID: "web1", Process: 9, At: time.Now().Add(-time.Hour)}} },
		kept: func() []late.Publication {
			return []late.Publication{{Plain: []byte("mine"), Topics: []string{"x"}, At: time.Now().Add(-10 * time.Second)}}
		},
		epoch: func() []byte { return appendEpoch(nil, 0, p.epoch.Load()) },
	}
}

func keepLink(t *testing.T, p *peerSide, out *outbox, run string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := p.link(out, run)
	done := make(chan struct{})
	go func() { defer close(done); l.keepOpen(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func add(t *testing.T, o *outbox, text string) {
	t.Helper()
	b, err := appendPublication(nil, Publication{Plain: []byte(text)})
	require.NoError(t, err)
	o.addRecord(kindPublication, 0, b, nil)
}

func wantReceived(p *peerSide, want ...string) func() error {
	return func() error {
		if got := p.received(); !slices.Equal(got, want) {
			return fmt.Errorf("received %q, want %q", got, want)
		}
		return nil
	}
}

func connected(p *peerSide) func() error {
	return func() error {
		p.in.mu.Lock()
		defer p.in.mu.Unlock()
		if len(p.in.origins) == 0 {
			return errors.New("no stream yet")
		}
		return nil
	}
}

func TestLinkDeliversInOrderOnce(t *testing.T) {
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	add(t, out, "before")
	out.recs[0].at = time.Now().Add(-10 * time.Second)
	p := newPeerSide(t)
	keepLink(t, p, out, "run1")
	patience.WaitNil(t, connected(p))
	add(t, out, "one")
	out.addRecord(kindSignIn, 0, appendSignIn(nil, "web1", 4), nil)
	add(t, out, "two")
	patience.WaitNil(t, wantReceived(p, "a:before", "a:one", "web1/4", "a:two"))
	for i := range 3 {
		p.srv.CloseClientConnections()
		add(t, out, fmt.Sprint("after ", i))
	}
	patience.WaitNil(t, wantReceived(p, "a:before", "a:one", "web1/4", "a:two", "a:after 0", "a:after 1", "a:after 2"))
	if old, first := p.ages[0], p.ages[1]; old < 10*time.Second || first > old-5*time.Second {
		t.Errorf("%s and %s old", old, first)
	}
}

// TestLink_InitialState: a peer is sent all processes and its own publications once, and an answer to each of its
// heartbeats.
func TestLink_InitialState(t *testing.T) {
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	p := newPeerSide(t)
	keepLink(t, p, out, "run1")
	now := time.Now()
	out.addRecord(kindStart, 0, appendStart(nil, late.Start{ID: "web2", Process: 3, At: now}, now), nil)
	told := func() error {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.starts) != 2 || p.starts[0].ID != "web1" || p.starts[0].Process != 9 ||
			time.Since(p.starts[0].At) < time.Hour || p.starts[1].ID != "web2" {
			return fmt.Errorf("told %+v", p.starts)
		}
		if len(p.own) != 1 || p.own[0] != "mine" || p.ownAge[0] < 10*time.Second {
			return fmt.Errorf("given back %q, published %s ago", p.own, p.ownAge)
		}
		if o := p.in.findOrigin("a"); o.stamp.Load() != 5 || o.heard.Load() == 0 {
			return fmt.Errorf("heard %d at %d", o.stamp.Load(), o.heard.Load())
		}
		return nil
	}
	patience.WaitNil(t, told)
	p.srv.CloseClientConnections()
	add(t, out, "after")
	patience.WaitNil(t, wantReceived(p, "a:after"))
	patience.WaitNil(t, told) // not all once more
}

// Nothing is lost of what is added before the first record has come.
func TestLink_BeforeFirstRecord(t *testing.T) {
	p := newPeerSide(t)
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	add(t, out, "before the link") // the peer's minions are there already
	keepLink(t, p, out, "run1")
	patience.WaitNil(t, wantReceived(p, "a:before the link"))

	p, out = newPeerSide(t), newOutbox(1000, 1<<20, time.Minute, time.Now)
	keepLink(t, p, out, "run1")
	patience.WaitNil(t, connected(p))
	p.srv.CloseClientConnections() // before any record came
	add(t, out, "while the link was down")
	patience.WaitNil(t, wantReceived(p, "a:while the link was down"))
}

func TestRestartedOriginStartsAnew(t *testing.T) {
	p := newPeerSide(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := newOutbox(1000, 1<<20, time.Minute, time.Now)
	l := p.link(first, "run1")
	done := make(chan struct{})
	go func() { defer close(done); l.keepOpen(ctx) }()
	patience.WaitNil(t, connected(p))
	add(t, first, "old")
	patience.WaitNil(t, wantReceived(p, "a:old"))
	cancel()
	<-done
	second := newOutbox(1000, 1<<20, time.Minute, time.Now)
	add(t, second, "new") // sequence number 1 again, in another run
	keepLink(t, p, second, "run2")
	patience.WaitNil(t, wantReceived(p, "a:old", "a:new"))
}

func TestStrangerIsRefused(t *testing.T) {
	p := newPeerSide(t)
	p.in.from = func(context.Context) (node.ID, bool) { return "", false }
	resp, err := p.client().Post("https://b"+Path, "", nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Fatalf("status %d", resp.StatusCode)
	}
}

// neverEnded is what is known of processes of peers where nobody asks their hosts.
func neverEnded(node.ID) time.Time { return time.Time{} }

// fakeWays is Ways of a peer that is reached as the test says.
type fakeWays struct {
	indirect atomic.Bool
	suspects chan node.ID
}

func (w *fakeWays) Suspect(id node.ID)    { w.suspects <- id }
func (w *fakeWays) Indirect(node.ID) bool { return w.indirect.Load() }

// A link that goes through another node is made anew when the peer is reached directly again, and loses nothing.
func TestLink_DirectAgain(t *testing.T) {
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	p := newPeerSide(t)
	ways := &fakeWays{}
	ways.indirect.Store(true)
	l := p.link(out, "run1")
	l.ways = ways
	ended := make(chan error, 1)
	go func() { ended <- l.runOnce(t.Context()) }()
	patience.WaitNil(t, connected(p))
	add(t, out, "one")
	patience.WaitNil(t, wantReceived(p, "a:one"))
	ways.indirect.Store(false)
	add(t, out, "two")
	select {
	case err := <-ended:
		if !errors.Is(err, errDirect) {
			t.Fatalf("it ended because of %v, want %v", err, errDirect)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	keepLink(t, p, out, "run1")
	add(t, out, "three")
	patience.WaitNil(t, wantReceived(p, "a:one", "a:two", "a:three"))
}

// A peer that says nothing is suspected.
func TestLink_Silent(t *testing.T) {
	t.Parallel()
	deaf, err := net.Listen("tcp", "127.0.0.1:0") // the kernel makes connections, and nobody takes them
	require.NoError(t, err)
	defer deaf.Close()
	l := (&peerSide{beats: newBeats(time.Now), srv: &httptest.Server{Listener: deaf}}).link(newOutbox(10, 1<<10, time.Minute, time.Now), "run1")
	ways := &fakeWays{suspects: make(chan node.ID, 100)}
	l.ways = ways
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); l.keepOpen(ctx) }()
	defer func() { cancel(); <-done }()
	select {
	case id := <-ways.suspects:
		if id != l.peer {
			t.Errorf("%s is suspected, want %s", id, l.peer)
		}
	case <-time.After(30 * time.Second):
		t.Error("a silent peer is not suspected")
	}
}
