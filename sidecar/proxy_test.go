package sidecar

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/guard"
	"saltclusterd/sidecar/relay"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/signin"
	"saltclusterd/sidecar/upstream"
)

const nonce = "0123456789abcdef0123456789abcdef"

// world is a node with a fake master, fake peers and one minion whose cryptography is real.
type world struct {
	mu       sync.Mutex
	proxy    *Proxy
	minion   *saltcrypt.MasterKey
	accepted bool
	seed     atomic.Uint64 // generation of the cluster's seed
	lapsed   atomic.Bool   // the one before is not good any more
	caughtUp int           // how often news were waited for
	behind   bool          // accepted, but this node has not heard of it
	keyFile  chan struct{} // closed when the master can see the key; nil: it can
	view     router.View

	masterErr  error
	diskErr    error          // the master's session files cannot be written
	masterKey  *saltcrypt.Key // session key the master holds; nil: the cluster's
	stale      bool           // the session file still says the cluster's key
	busy       chan struct{}  // the master answers when it is closed; nil: at once
	shared     bool           // the master takes requests of version 2, under its own AES key
	masterAES  saltcrypt.Key
	epoch      saltcrypt.Key
	material   *epochs.Material   // of epoch
	says       string             // what the master answers; empty: {"ok": true}
	peerSays   map[node.ID]string // the same of other nodes
	bare       map[node.ID]string // other nodes' answers that are not sealed
	atMaster   [][]byte
	atPeers    map[node.ID]int
	peerErr    map[node.ID]error
	passed     atomic.Int64 // requests that were given back to the node that had handed them over
	passedDown atomic.Bool  // the last of them
	signIns    int
	relayed    bool // the last of them
	invalidate int
	own        *saltcrypt.Key // what the master itself has given the minion
	ownUntil   time.Time

	noNews error         // what CatchUp returns
	lacks  time.Duration // what Behind returns

	onAccepted func() // called when a key is looked up
}

func (w *world) Accepted(id string) (string, bool) {
	w.mu.Lock()
	if hook := w.onAccepted; hook != nil {
		w.mu.Unlock()
		hook()
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	return w.minion.PublicText(), w.accepted && id == "web1"
}

func (w *world) Session(id, pub string) saltcrypt.Key {
	return saltcrypt.DeriveSession([]byte("seed"+strings.Repeat("+", int(w.seed.Load()))), id, pub)
}

func (w *world) Generation() uint64 { return w.seed.Load() }

func (w *world) FormerSessions(id, pub string) []saltcrypt.Key {
	if w.seed.Load() == 0 || w.lapsed.Load() {
		return nil
	}
	return []saltcrypt.Key{saltcrypt.DeriveSession([]byte("seed"+strings.Repeat("+", int(w.seed.Load()-1))), id, pub)}
}

// CatchUp is when the node hears of the minion.
func (w *world) CatchUp(context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = w.accepted || w.behind
	w.caughtUp++
	return w.noNews
}

func (w *world) Behind() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lacks
}

func (w *world) OnDisk(string) func(context.Context) error {
	if w.keyFile == nil {
		return nil
	}
	return func(ctx context.Context) error {
		select {
		case <-w.keyFile:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *world) session() saltcrypt.Key { return w.Session("web1", w.minion.PublicText()) }

func (w *world) Ensure(_ string, want saltcrypt.Key) (saltcrypt.Key, bool, error) {
	if w.diskErr != nil {
		return saltcrypt.Key{}, false, w.diskErr
	}
	if w.masterKey == nil || w.stale {
		return want, true, nil
	}
	return *w.masterKey, false, nil
}

func (w *world) Own(id string) (saltcrypt.Key, time.Time, bool) {
	if w.own == nil || id != "web1" {
		return saltcrypt.Key{}, time.Time{}, false
	}
	return *w.own, w.ownUntil, true
}

func (w *world) Invalidate(string) { w.invalidate++; w.stale = false }

func (w *world) Up() bool { return w.masterErr == nil }

// Go answers {"ok": true} under the session key the master holds, or "bad load".
func (w *world) Go(_ context.Context, _ time.Time, _ string, body []byte, done func([]byte, error)) {
	w.mu.Lock()
	w.atMaster = append(w.atMaster, body)
	err := w.masterErr
	w.mu.Unlock()
	if err != nil {
		done(nil, err)
		return
	}
	if w.busy != nil {
		go func() {
			<-w.busy
			w.carryOut(body, done)
		}()
		return
	}
	w.carryOut(body, done)
}

func (w *world) carryOut(body []byte, done func([]byte, error)) {
	key := w.session()
	switch {
	case w.shared:
		key = w.masterAES
	case w.masterKey != nil:
		key = *w.masterKey
	}
	env, err := saltwire.ParseEnvelope(body)
	if err != nil {
		done(nil, err)
		return
	}
	c := saltcrypt.NewCrypticle(key)
	if _, err := c.Open(nil, env.Load); err != nil {
		done(saltwire.BadLoad(), nil)
		return
	}
	done(saltwire.AppendRaw(nil, c.Seal(nil, []byte(cmp.Or(w.says, "\x81\xa2ok\xc3")), []byte(nonce))), nil)
}

func (w *world) Do(_ context.Context, to node.ID, body []byte, _ netip.AddrPort) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.atPeers[to]++
	if err := w.peerErr[to]; err != nil {
		return nil, err
	}
	if text := w.bare[to]; text != "" {
		return saltwire.AppendRaw(nil, text), nil
	}
	c := saltcrypt.NewCrypticle(w.session())
	return saltwire.AppendRaw(nil, c.Seal(nil, []byte(cmp.Or(w.peerSays[to], "\x81\xa2ok\xc3")), []byte(nonce))), nil
}

func (w *world) Sealing() (cur, prev *epochs.Material) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.material == nil {
		w.material = &epochs.Material{Crypticle: saltcrypt.NewCrypticle(w.epoch)}
	}
	return w.material, nil
}

func (w *world) Serve(r *signin.Request) {
	w.signIns++
	w.relayed = r.Relayed
	r.Reply([]byte("signed in"))
}

// signIn is what the minion signs in with.
func (w *world) signIn() []byte {
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Version: 3, HasVersion: true,
		Load: saltwire.AppendAuth(nil, saltwire.AuthRequest{
			ID: "web1", Nonce: nonce, Pub: w.minion.PublicText(), EncAlgo: saltcrypt.OAEPSHA1, SigAlgo: saltcrypt.PKCS1v15SHA1,
		}),
	})
}

func newWorld(t testing.TB) *world {
	t.Helper()
	key, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	w := &world{
		minion: key, accepted: true, atPeers: map[node.ID]int{}, peerErr: map[node.ID]error{}, peerSays: map[node.ID]string{},
		bare: map[node.ID]string{},
	}
	w.masterAES, w.epoch = newKey(t), newKey(t)
	w.view = router.View{Self: "a"}
	for _, id := range []node.ID{"a", "b", "c"} {
		w.view.Nodes = append(w.view.Nodes, router.Node{ID: id, Weight: 100, Alive: true, MasterUp: true, Major: 3008})
	}
	log := slog.New(slog.DiscardHandler)
	w.proxy = NewProxy(Config{
		Guard: guard.New(guard.Config{Logger: log, MinVersion: 2}), View: w.seen, SignIn: w, Keys: w, Master: w,
		Sessions: w, Relay: w, Epochs: w, MasterAES: func() *saltcrypt.Crypticle {
			return saltcrypt.NewCrypticle(w.masterAES)
		},
		Logger: log,
	})
	t.Cleanup(func() { w.proxy.Close() })
	return w
}

func (w *world) seen() router.View {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

// request seals a command as the minion does.
func (w *world) request(t testing.TB, load map[string]any) []byte {
	t.Helper()
	tok, err := w.minion.SignX931([]byte("salt"))
	require.NoError(t, err)
	full := map[string]any{"id": "web1", "nonce": nonce, "ts": time.Now().Unix(), "tok": tok}
	for k, v := range load {
		full[k] = v
	}
	plain, err := saltwire.AppendAny(nil, full, saltwire.Wire)
	require.NoError(t, err)
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Version: 3, HasVersion: true, ID: "web1", EncAlgo: saltcrypt.OAEPSHA1,
		SigAlgo: saltcrypt.PKCS1v15SHA1,
		Load:    saltcrypt.NewCrypticle(w.session()).Seal(nil, plain, nil),
	})
}

// send carries one request through the proxy; a nil reply means that it was dropped.
func (w *world) send(t *testing.T, body []byte, from node.ID) []byte {
	t.Helper()
	return w.take(t, &request{body: body, from: from})
}

func (w *world) take(t *testing.T, x *request) []byte {
	t.Helper()
	got := make(chan []byte, 2)
	to := respondTo(got)
	if given, ok := x.to.(*fakeResponder); ok {
		to.known, to.linger = given.known, given.linger
	}
	x.at, x.to = time.Now(), to
	if x.from != "" {
		to.pass = func(down bool) {
			w.passed.Add(1)
			w.passedDown.Store(down)
			got <- nil
		}
	}
	w.proxy.openRequest(x)
	select {
	case b := <-got:
		return b
	case <-time.After(30 * time.Second):
		t.Fatal("neither answered nor dropped")
		return nil
	}
}

// opened says whether the minion can read the reply.
func (w *world) opened(reply []byte) bool {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return false
	}
	plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, sealed)
	return err == nil && bytes.Equal(plain, []byte(nonce+"\x81\xa2ok\xc3"))
}

func TestProxy_ForwardVerbatim(t *testing.T) {
	w := newWorld(t)
	body := w.request(t, map[string]any{"cmd": "_pillar"})
	if !w.opened(w.send(t, body, "")) {
		t.Error("the minion cannot read the answer")
	}
	if len(w.atMaster) != 1 || !bytes.Equal(w.atMaster[0], body) {
		t.Error("the master got something else than the minion sent")
	}
}

// Another node has just accepted the minion: its request waits until the master can see the key.
func TestProxy_WaitForKeyFile(t *testing.T) {
	w := newWorld(t)
	w.accepted, w.behind, w.keyFile = false, true, make(chan struct{})
	time.AfterFunc(10*time.Millisecond, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		check.Equal(t, len(w.atMaster), 0, "the master got a request before the key")
		close(w.keyFile)
	})
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")) {
		t.Error("not answered")
	}
}

// A node learns of all earlier changes to the keys before it decides a sign-in.
func TestProxy_SignInCatchesUp(t *testing.T) {
	w := newWorld(t)
	for i := range 2 {
		if got := w.send(t, w.signIn(), ""); string(got) != "signed in" || w.caughtUp != i+1 {
			t.Errorf("answered %q after %d looks at the news", got, w.caughtUp)
		}
	}
}

// A minion whose key is not accepted is refused, also after the node has asked for the latest state.
func TestProxy_UnknownMinion(t *testing.T) {
	w := newWorld(t)
	w.accepted = false
	for range 3 {
		if got := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), ""); !bytes.Equal(got, saltwire.BadLoad()) {
			t.Errorf("answered %q", got)
		}
	}
	check.Equal(t, len(w.atMaster), 0, "it reached the master")
}

func TestWorkerWithAnotherSessionKey(t *testing.T) {
	for _, stale := range []bool{false, true} {
		w := newWorld(t)
		other := newKey(t)
		w.masterKey, w.stale = &other, stale
		if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")) {
			t.Errorf("stale %t: the minion cannot read the answer", stale)
		}
		if stale != (w.invalidate == 1) {
			t.Errorf("stale %t: invalidated %d times", stale, w.invalidate)
		}
	}
}

// What a minion has sealed with a key of the master, from before that was adopted, is answered as the master would,
// wherever it is carried out.
func TestProxy_SealedBeforeAdoption(t *testing.T) {
	later := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		until  time.Time
		from   node.ID
		kept   bool // the master's workers still have it
		peer   bool // another node carries it out
		reload bool // the token is another minion's
		answer bool
	}{
		"by the master, which has the cluster's key": {until: later, answer: true},
		"by the master, which has still its own":     {until: later, kept: true, answer: true},
		"by another node":                            {until: later, peer: true, answer: true},
		"expired":                                    {until: time.Now().Add(-time.Second)},
		"relayed":                                    {until: later, from: "b"},
		"without the minion's own key":               {until: later, reload: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			own := newKey(t)
			w.own, w.ownUntil = &own, c.until
			if c.kept {
				w.masterKey = &own
			}
			if c.peer {
				w.view.Nodes[0].MasterUp = false
			}
			load := map[string]any{"cmd": "_pillar"}
			if c.reload {
				load["tok"] = []byte("made up")
			}
			env, err := saltwire.ParseEnvelope(w.request(t, load))
			require.NoError(t, err)
			plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, env.Load)
			require.NoError(t, err)
			env.Load = saltcrypt.NewCrypticle(own).Seal(nil, plain, nil)
			reply := w.send(t, saltwire.AppendEnvelope(nil, env), c.from)
			if !c.answer {
				if !bytes.Equal(reply, saltwire.BadLoad()) || len(w.atMaster) > 0 {
					t.Errorf("answered %q", reply)
				}
				return
			}
			sealed, _ := saltwire.Bytes(reply)
			if plain, err := saltcrypt.NewCrypticle(own).Open(nil, sealed); err != nil ||
				string(plain) != nonce+"\x81\xa2ok\xc3" {
				t.Errorf("the minion cannot read the answer: %v, %q", err, reply)
			}
			if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")) {
				t.Error("signed in anew, it cannot read the answer")
			}
			if c.peer != (len(w.atMaster) == 0) {
				t.Errorf("the master got %d requests", len(w.atMaster))
			}
		})
	}
}

func TestVersion2_SharedKey(t *testing.T) {
	w := newWorld(t)
	w.shared = true
	plain, err := saltwire.AppendAny(nil, map[string]any{"id": "web1", "nonce": nonce, "cmd": "_pillar"}, saltwire.Wire)
	require.NoError(t, err)
	seal := func(key saltcrypt.Key) []byte {
		return saltwire.AppendEnvelope(nil, saltwire.Envelope{
			Enc: saltwire.EncAES, Version: 2, HasVersion: true, Load: saltcrypt.NewCrypticle(key).Seal(nil, plain, nil),
		})
	}
	sealed, ok := saltwire.Bytes(w.send(t, seal(w.epoch), ""))
	if !ok {
		t.Fatal("no answer")
	}
	got, err := saltcrypt.NewCrypticle(w.epoch).Open(nil, sealed)
	if err != nil || !bytes.Equal(got, []byte(nonce+"\x81\xa2ok\xc3")) {
		t.Errorf("answer %q, %v", got, err)
	}
	if reply := w.send(t, seal(w.masterAES), ""); !bytes.Equal(reply, saltwire.BadLoad()) || len(w.atMaster) != 1 {
		t.Error("a request under another key was taken")
	}
}

// The file client of older minions sends neither id nor token. It gets what is the same for every minion, and nothing
// else does.
func TestVersion2_NoID(t *testing.T) {
	for name, c := range map[string]struct {
		load  map[string]any
		outer string // id outside
		from  node.ID
		taken bool
	}{
		"a file": {load: map[string]any{"cmd": "_serve_file", "path": "top.sls", "saltenv": "base", "loc": 0},
			taken: true},
		"a hash, relayed": {load: map[string]any{"cmd": "_file_hash", "path": "top.sls", "saltenv": "base"}, from: "b",
			taken: true},
		"the master's options": {load: map[string]any{"cmd": "_master_opts"}, taken: true},
		"a pillar":             {load: map[string]any{"cmd": "_pillar", "grains": map[string]any{}}},
		"a file to keep":       {load: map[string]any{"cmd": "_file_recv", "path": "x"}},
		"a token of somebody":  {load: map[string]any{"cmd": "_serve_file", "path": "top.sls", "tok": "x"}},
		"an id outside":        {load: map[string]any{"cmd": "_serve_file", "path": "top.sls"}, outer: "web1"},
		"another's id":         {load: map[string]any{"cmd": "_serve_file", "path": "top.sls", "id": "web2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.shared = true
			w.accepted = false // what proves it is the key only
			c.load["nonce"] = nonce
			plain, err := saltwire.AppendAny(nil, c.load, saltwire.Wire)
			require.NoError(t, err)
			seal := func(key saltcrypt.Key) []byte {
				return saltwire.AppendEnvelope(nil, saltwire.Envelope{
					Enc: saltwire.EncAES, Version: 2, HasVersion: true, ID: c.outer,
					Load: saltcrypt.NewCrypticle(key).Seal(nil, plain, nil),
				})
			}
			reply := w.send(t, seal(w.epoch), c.from)
			sealed, _ := saltwire.Bytes(reply)
			got, err := saltcrypt.NewCrypticle(w.epoch).Open(nil, sealed)
			if taken := err == nil && bytes.Equal(got, []byte(nonce+"\x81\xa2ok\xc3")); taken != c.taken {
				t.Errorf("answer %q (%q), %v", reply, got, err)
			}
			before := len(w.atMaster)
			if reply := w.send(t, seal(w.masterAES), c.from); !bytes.Equal(reply, saltwire.BadLoad()) ||
				len(w.atMaster) != before {
				t.Error("a request under another key was taken")
			}
		})
	}
}

func TestReturnGoesToThePublisher(t *testing.T) {
	w := newWorld(t)
	ret := map[string]any{"cmd": "_return", "jid": "20261121000000000001", "master_id": "b", "return": true}
	if !w.opened(w.send(t, w.request(t, ret), "")) || w.atPeers["b"] != 1 || len(w.atMaster) != 0 {
		t.Errorf("peers %v, master %d", w.atPeers, len(w.atMaster))
	}
	// Relayed to us it stays here, whatever we would decide.
	if !w.opened(w.send(t, w.request(t, ret), "c")) || len(w.atMaster) != 1 {
		t.Errorf("relayed: master %d", len(w.atMaster))
	}
}

func TestPublisherThatCannotBeReached(t *testing.T) {
	w := newWorld(t)
	for _, id := range []node.ID{"b", "c"} {
		w.peerErr[id] = errors.New("gone")
	}
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_return", "jid": "1", "master_id": "b"}), "")) {
		t.Error("the return was not kept by anybody")
	}
	if w.atPeers["b"] != 1 || len(w.atMaster) != 1 {
		t.Errorf("peers %v, master %d", w.atPeers, len(w.atMaster))
	}
}

func TestMasterThatIsDown(t *testing.T) {
	w := newWorld(t)
	w.masterErr = upstream.ErrDown
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")) {
		t.Error("no peer's master answered")
	}
	w.masterErr, w.diskErr = nil, errors.New("no space left on device")
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "minion_publish"}), "")) {
		t.Error("this node's disk is full, and nobody else answered")
	}
	w.diskErr = nil
	w.masterErr = upstream.ErrLost // it may have been carried out
	if reply := w.send(t, w.request(t, map[string]any{"cmd": "minion_publish"}), ""); reply != nil {
		t.Error("a command was given twice")
	}
}

// awaited returns when so many requests wait for a master.
func (w *world) awaited(t *testing.T, n int) {
	t.Helper()
	for start := time.Now(); w.proxy.queue.countWaiting() != n; runtime.Gosched() {
		if time.Since(start) > 30*time.Second {
			t.Fatalf("%d requests wait, not %d", w.proxy.queue.countWaiting(), n)
		}
	}
}

// masterDown and peerBusy are what a node hears of one that did nothing with a request.
func masterDown(t testing.TB) error { return passedBack(t, true) }
func peerBusy(t testing.TB) error   { return passedBack(t, false) }

func passedBack(t testing.TB, down bool) error {
	t.Helper()
	_, err := relay.NewClient(&http.Client{Transport: passes(down)}).Do(t.Context(), "b", nil, netip.AddrPort{})
	if !relay.Unsent(err) || errors.Is(err, relay.ErrMasterDown) != down {
		t.Fatal(err)
	}
	return err
}

// passes is a node that passes back whatever it gets.
type passes bool

func (down passes) RoundTrip(r *http.Request) (*http.Response, error) {
	to := httptest.NewRecorder()
	member := func(context.Context) (node.ID, bool) { return "a", true }
	relay.Handler(passer(down), member, 0).ServeHTTP(to, r)
	return to.Result(), nil
}

type passer bool

func (down passer) ServeRelayed(_ context.Context, _ node.ID, _ netip.AddrPort, _ []byte, to relay.Hands) {
	to.Pass(bool(down))
}

func (down passer) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to relay.Hands) {
	down.ServeRelayed(ctx, from, remote, body, to)
}

// What a peer has handed over and nothing was done with goes back to it; what may have been carried out does not.
func TestHandedBack(t *testing.T) {
	w := newWorld(t)
	event := w.request(t, map[string]any{"cmd": "_minion_event", "tag": "x", "data": map[string]any{}})
	for _, c := range []struct {
		err    error
		passed int64
	}{{upstream.ErrDown, 1}, {upstream.ErrLost, 0}, {upstream.ErrBusy, 1}} {
		w.passed.Store(0)
		w.masterErr = c.err
		reply := w.send(t, event, "b")
		if reply != nil || w.passed.Load() != c.passed || len(w.atPeers) != 0 {
			t.Errorf("%v: reply %q, passed back %d times, peers %v", c.err, reply, w.passed.Load(), w.atPeers)
		}
		if down := errors.Is(c.err, upstream.ErrDown); c.passed > 0 && w.passedDown.Load() != down {
			t.Errorf("%v: passed back as down %t", c.err, !down)
		}
	}
}

// One after the other passes a request back: another one gets it, and when there is none it waits.
func TestProxy_MastersBusyOrDown(t *testing.T) {
	w := newWorld(t)
	event := w.request(t, map[string]any{"cmd": "_minion_event", "tag": "x", "data": map[string]any{}})
	w.peerErr["b"], w.peerErr["c"] = peerBusy(t), masterDown(t)
	if !w.opened(w.send(t, event, "")) || len(w.atMaster) != 1 {
		t.Errorf("not answered here: master %d, peers %v", len(w.atMaster), w.atPeers)
	}
	// All have a master, and too much to do: their minions come again.
	w.masterErr, w.peerErr["c"] = upstream.ErrBusy, peerBusy(t)
	if reply := w.send(t, event, ""); reply != nil || w.proxy.queue.countWaiting() != 0 {
		t.Errorf("answered %q by who was busy, or it waits", reply)
	}
	w.peerErr["b"], w.peerErr["c"] = masterDown(t), masterDown(t)
	w.masterErr = upstream.ErrDown
	answered := make(chan []byte, 1)
	go func() { answered <- w.send(t, event, "") }()
	w.awaited(t, 1)
	w.mu.Lock()
	clear(w.peerErr)
	w.masterErr = nil
	w.mu.Unlock()
	w.proxy.NotifyMasters()
	if !w.opened(<-answered) {
		t.Error("not answered when a master was there")
	}
}

// A chunk of a file is not given to another master because one is busy: the file would be there in two halves.
func TestProxy_FileChunkStays(t *testing.T) {
	w := newWorld(t)
	chunk := w.request(t, map[string]any{"cmd": "_file_recv", "loc": 1 << 20})
	w.masterErr, w.peerErr["b"], w.peerErr["c"] = upstream.ErrBusy, peerBusy(t), peerBusy(t)
	if reply := w.send(t, chunk, ""); reply != nil || len(w.atMaster)+w.atPeers["b"]+w.atPeers["c"] != 1 {
		t.Errorf("reply %q, master %d, peers %v", reply, len(w.atMaster), w.atPeers)
	}
	clear(w.atPeers)
	w.atMaster, w.masterErr, w.peerErr["b"], w.peerErr["c"] = nil, nil, masterDown(t), masterDown(t)
	if !w.opened(w.send(t, chunk, "")) {
		t.Error("nobody takes it though a master is there")
	}
}

// Who gets a copy of a write that has to wait gets one.
func TestProxy_OneCopyOfPendingWrite(t *testing.T) {
	w := newWorld(t)
	w.mu.Lock()
	w.view.Nodes[0].MasterUp = false
	w.peerErr["b"], w.peerErr["c"] = masterDown(t), masterDown(t)
	w.mu.Unlock()
	answered := make(chan []byte, 1)
	go func() { answered <- w.send(t, w.request(t, map[string]any{"cmd": "_register_resources"}), "") }()
	w.awaited(t, 1)
	w.mu.Lock()
	clear(w.peerErr)
	w.mu.Unlock()
	w.proxy.NotifyMasters()
	if !w.opened(<-answered) {
		t.Error("not answered when masters were there")
	}
	w.proxy.wg.Wait()
	if n := w.atPeers["b"] + w.atPeers["c"]; n != 3 { // two questions to one, a copy to the other
		t.Errorf("peers %v", w.atPeers)
	}
}

// masters says whether any master can be asked.
func (w *world) masters(up bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.view.Nodes = slices.Clone(w.view.Nodes)
	for i := range w.view.Nodes {
		w.view.Nodes[i].MasterUp = up
	}
}

// While no master can be asked a request waits, as long as somebody waits for the answer. One of a peer does not: that
// may have another.
func TestNoMasterAtAll(t *testing.T) {
	w := newWorld(t)
	w.masters(false)
	if reply := w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "b"); !w.opened(reply) { // it decides, not we
		t.Error("one that a peer has handed over was not given to the master")
	}
	answered := make(chan []byte, 1)
	body := w.request(t, map[string]any{"cmd": "_pillar"})
	ask := func(then func()) {
		t.Helper()
		go func() { answered <- w.send(t, body, "") }()
		w.awaited(t, 1)
		then()
		w.proxy.NotifyMasters()
		if !w.opened(<-answered) {
			t.Error("not answered when a master was there")
		}
	}
	ask(func() {
		w.proxy.NotifyMasters() // that concerns somebody else
		w.masters(true)
	})
	// The master has gone a moment ago, and nobody else is there.
	w.masters(false)
	w.mu.Lock()
	w.view.Nodes[0].MasterUp, w.masterErr = true, upstream.ErrDown
	w.mu.Unlock()
	ask(func() {
		w.mu.Lock()
		w.masterErr = nil
		w.mu.Unlock()
	})
	w.masters(false)
	w.proxy.queue.waiting = make([]*call, maxWaiting)
	if reply := w.send(t, body, ""); reply != nil || w.proxy.queue.countWaiting() != maxWaiting {
		t.Error("answered by nobody's master, or it waits though too many do")
	}
	w.proxy.queue.waiting = nil
	w.proxy.cfg.ForwardTimeout = -1
	if reply := w.send(t, body, ""); reply != nil || w.proxy.queue.countWaiting() != 0 {
		t.Error("answered by nobody's master, or it waits though its time is over")
	}
}

// What happens between the moment in which a request is refused and that in which it begins to wait counts, too.
func TestProxy_MasterUpWhileRefused(t *testing.T) {
	w := newWorld(t)
	w.masters(false)
	w.proxy.cfg.View = func() router.View {
		v := w.seen()
		w.masters(true)
		w.proxy.NotifyMasters()
		return v
	}
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")) {
		t.Error("not answered")
	}
}

// Many wait while masters come and go: each is answered once, none is forgotten, and the room is empty then.
func TestManyWaitForAMaster(t *testing.T) {
	const many = 200
	w := newWorld(t)
	w.masters(false)
	body := w.request(t, map[string]any{"cmd": "_pillar"})
	answered := make(chan []byte, many)
	var g sync.WaitGroup
	for range many {
		g.Go(func() { answered <- w.send(t, body, "") })
	}
	ended := make(chan struct{})
	go func() { g.Wait(); close(ended) }()
	for up := true; ; up = !up {
		w.masters(up)
		w.proxy.NotifyMasters()
		select {
		case <-ended:
			for range many {
				if !w.opened(<-answered) {
					t.Fatal("not answered")
				}
			}
			if w.proxy.queue.countWaiting() != 0 || len(w.atMaster) != many {
				t.Errorf("%d wait, the master got %d", w.proxy.queue.countWaiting(), len(w.atMaster))
			}
			return
		default:
			runtime.Gosched()
		}
	}
}

func TestDequeue(t *testing.T) {
	w := newWorld(t)
	w.proxy.cfg.ForwardTimeout = time.Minute
	start := time.Now()
	guest := func(at time.Time, gone bool) *call {
		return &call{request: &request{at: at, to: &fakeResponder{gone: func() bool { return gone }}}}
	}
	stays, gone, old := guest(start, false), guest(start, true), guest(start.Add(-time.Hour), false)
	queue := w.proxy.queue
	queue.waiting, queue.open = []*call{stays, gone, old}, true
	again, over, empty := w.proxy.dequeueCalls(t.Context(), start)
	if len(again) != 0 || !slices.Equal(over, []*call{gone, old}) || empty {
		t.Errorf("%d again, %d over, empty %t", len(again), len(over), empty)
	}
	queue.news.Add(1)
	again, over, empty = w.proxy.dequeueCalls(t.Context(), start)
	if !slices.Equal(again, []*call{stays}) || len(over) != 0 || !empty {
		t.Errorf("news: %d again, %d over, empty %t", len(again), len(over), empty)
	}
	queue.waiting, queue.open = []*call{stays}, true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	again, over, empty = w.proxy.dequeueCalls(ctx, start)
	if len(again) != 0 || !slices.Equal(over, []*call{stays}) || !empty {
		t.Errorf("closing: %d again, %d over, empty %t", len(again), len(over), empty)
	}
}

// Who closes a proxy does not leave those waiting who wait for a master.
func TestClosedWhileARequestWaits(t *testing.T) {
	w := newWorld(t)
	w.masters(false)
	dropped := make(chan struct{})
	w.proxy.openRequest(&request{
		body: w.request(t, map[string]any{"cmd": "_pillar"}), at: time.Now(),
		to: &fakeResponder{reply: func([]byte) { t.Error("answered") }, drop: func() { close(dropped) }},
	})
	if n := w.proxy.queue.countWaiting(); n != 1 {
		t.Fatalf("%d wait", n)
	}
	w.proxy.Close()
	<-dropped
}

func TestMineIsWrittenEverywhere(t *testing.T) {
	w := newWorld(t)
	if !w.opened(w.send(t, w.request(t, map[string]any{"cmd": "_mine", "data": map[string]any{}}), "")) {
		t.Error("not answered")
	}
	w.proxy.wg.Wait()
	if w.atPeers["b"] != 1 || w.atPeers["c"] != 1 || len(w.atMaster) != 1 {
		t.Errorf("peers %v, master %d", w.atPeers, len(w.atMaster))
	}
}

func TestProxy_UnprovenRefused(t *testing.T) {
	w := newWorld(t)
	good := w.request(t, map[string]any{"cmd": "_pillar"})
	other, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	wrongTok, err := other.SignX931([]byte("salt"))
	require.NoError(t, err)
	clear := func(load map[string]any) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{"enc": "clear", "version": 3, "load": load}, saltwire.Wire)
		require.NoError(t, err)
		return b
	}
	enc, err := saltwire.AppendAny(nil, map[string]any{"enc": "none", "version": 3,
		"load": map[string]any{"cmd": "publish"}}, saltwire.Wire)
	require.NoError(t, err)
	for name, body := range map[string][]byte{
		"garbage":             {0xc1, 0xff},
		"empty":               {},
		"trailing bytes":      append(bytes.Clone(good), 0xc0),
		"unknown enc":         enc,
		"publish in clear":    clear(map[string]any{"cmd": "publish", "key": "x"}),
		"unknown in clear":    clear(map[string]any{"cmd": "__init__"}),
		"ping":                clear(map[string]any{"cmd": "ping"}),
		"auth without a key":  clear(map[string]any{"cmd": "_auth", "id": "web1"}),
		"flipped ciphertext":  flip(good),
		"token of another":    w.request(t, map[string]any{"cmd": "_pillar", "tok": wrongTok}),
		"another id inside":   w.request(t, map[string]any{"cmd": "_pillar", "id": "web2"}),
		"command nobody has":  w.request(t, map[string]any{"cmd": "__class__"}),
		"nonce of wrong size": w.request(t, map[string]any{"cmd": "_pillar", "nonce": "short"}),
	} {
		w.send(t, body, "")
		if len(w.atMaster) != 0 {
			t.Fatalf("%s reached the master", name)
		}
	}
	w.accepted = false
	if reply := w.send(t, good, ""); !bytes.Equal(reply, saltwire.BadLoad()) || len(w.atMaster) != 0 {
		t.Errorf("a minion without accepted key: %q", reply)
	}
	check.Equal(t, w.signIns, 0, "sign-ins")
}

// flip changes one byte inside the ciphertext.
func flip(body []byte) []byte {
	b := bytes.Clone(body)
	b[len(b)/2] ^= 1
	return b
}
