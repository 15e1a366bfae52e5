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
	"saltclusterd/sidecar/hlc"
)

// peerSide is a receiving node: its inbox behind a real HTTP/2 server.
type peerSide struct {
	in    *inbox
	srv   *httptest.Server
	epoch atomic.Uint64

	mu  sync.Mutex
	got []string
}

func (p *peerSide) remotePublication(origin node.ID, pub Publication) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got = append(p.got, string(origin)+":"+string(pub.Plain))
}

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
	p := &peerSide{}
	p.in = &inbox{
		from: func(context.Context) (node.ID, bool) { return "a", true }, clock: hlc.New(time.Now, 0), sink: p,
		epoch: p.epoch.Load, log: slog.New(slog.DiscardHandler), origins: map[node.ID]*origin{}, since: time.Now(),
	}
	p.srv = httptest.NewUnstartedServer(p.in)
	p.srv.EnableHTTP2 = true
	p.srv.StartTLS()
	t.Cleanup(p.srv.Close)
	return p
}

// client dials the peer's server whatever the URL's host is, as the peer port does with node ids.
func (p *peerSide) client() *http.Client {
	base := p.srv.Client().Transport.(*http.Transport).Clone()
	base.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, p.srv.Listener.Addr().String())
	}
	base.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	return &http.Client{Transport: base}
}

func keepLink(t *testing.T, p *peerSide, out *outbox, run string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &link{
		peer: "b", run: run, client: p.client(), out: out, clock: hlc.New(time.Now, 0),
		log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil),
	}
	done := make(chan struct{})
	go func() { defer close(done); l.keep(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

func add(t *testing.T, o *outbox, text string) {
	t.Helper()
	b, err := appendPublication(nil, Publication{Plain: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	o.add(kindPublication, 0, b, nil)
}

// eventually waits for a condition and says what was seen last.
func eventually(t *testing.T, cond func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Millisecond) // between two looks at the condition
	}
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
	eventually(t, connected(p))
	add(t, out, "one")
	out.add(kindSignIn, 0, appendSignIn(nil, "web1", 4), nil)
	add(t, out, "two")
	// What was published before the peer served is not news to its minions.
	eventually(t, wantReceived(p, "a:one", "web1/4", "a:two"))
	for i := range 3 {
		p.srv.CloseClientConnections()
		add(t, out, fmt.Sprint("after ", i))
	}
	eventually(t, wantReceived(p, "a:one", "web1/4", "a:two", "a:after 0", "a:after 1", "a:after 2"))
}

func TestNothingIsLostBeforeTheFirstRecord(t *testing.T) {
	p := newPeerSide(t)
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	add(t, out, "before the link") // the peer's minions are there already
	keepLink(t, p, out, "run1")
	eventually(t, wantReceived(p, "a:before the link"))

	p, out = newPeerSide(t), newOutbox(1000, 1<<20, time.Minute, time.Now)
	keepLink(t, p, out, "run1")
	eventually(t, connected(p))
	p.srv.CloseClientConnections() // before any record came
	add(t, out, "while the link was down")
	eventually(t, wantReceived(p, "a:while the link was down"))
}

func TestRestartedOriginStartsAnew(t *testing.T) {
	p := newPeerSide(t)
	ctx, cancel := context.WithCancel(t.Context())
	first := newOutbox(1000, 1<<20, time.Minute, time.Now)
	l := &link{peer: "b", run: "run1", client: p.client(), out: first, clock: hlc.New(time.Now, 0), log: slog.New(slog.DiscardHandler), metrics: newMetrics(nil)}
	done := make(chan struct{})
	go func() { defer close(done); l.keep(ctx) }()
	eventually(t, connected(p))
	add(t, first, "old")
	eventually(t, wantReceived(p, "a:old"))
	cancel()
	<-done
	second := newOutbox(1000, 1<<20, time.Minute, time.Now)
	add(t, second, "new") // sequence number 1 again, in another run
	keepLink(t, p, second, "run2")
	eventually(t, wantReceived(p, "a:old", "a:new"))
}

func TestStrangerIsRefused(t *testing.T) {
	p := newPeerSide(t)
	p.in.from = func(context.Context) (node.ID, bool) { return "", false }
	resp, err := p.client().Post("https://b"+Path, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Fatalf("status %d", resp.StatusCode)
	}
}
