package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"syscall"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/events"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
	"saltclusterd/sidecar/upstream"
)

// journals is a Returns that says what it was asked for.
type journals struct {
	take, keep, late error
	off              error
	stores           error // why the master cannot store one
	defers           bool
	taken            []string
	requests         []returns.Request // of Take

	published    string // what the job of a question has returned
	publishedErr error
}

func (j *journals) Take(r returns.Request, done func([]byte, error)) {
	j.taken, j.requests = append(j.taken, "take "+r.Minion), append(j.requests, r)
	done([]byte{0xc2}, j.take)
}

func (j *journals) Keep(to node.ID, r returns.Request, done func([]byte, error)) {
	j.taken = append(j.taken, "keep for "+string(to))
	done([]byte{0xc0}, j.keep)
}

func (j *journals) Defer(r returns.Request, done func([]byte, error)) {
	j.taken = append(j.taken, "later")
	done([]byte{0xc0}, j.late)
}

func (j *journals) HandOff(_ context.Context, to node.ID, _ returns.Request) ([]byte, error) {
	j.taken = append(j.taken, "hand off for "+string(to))
	return []byte{0xc0}, j.off
}

func (j *journals) Answered(minion string, _ []byte) { j.taken = append(j.taken, "answered "+minion) }

func (j *journals) Defers() bool { return j.defers }

func (j *journals) MasterTakes(int) error { return j.stores }

func (j *journals) Mend(_, minion string) { j.taken = append(j.taken, "mend "+minion) }

func (j *journals) Published(context.Context, string, string) ([]byte, error) {
	j.taken = append(j.taken, "asked")
	return []byte(j.published), j.publishedErr
}

// answer opens a reply: "" when there is none the minion can read.
func (w *world) answer(reply []byte) string {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return string(reply)
	}
	plain, err := saltcrypt.NewCrypticle(w.session()).Open(nil, sealed)
	if err != nil || !bytes.HasPrefix(plain, []byte(nonce)) {
		return ""
	}
	return string(plain[len(nonce):])
}

func TestReturnWithoutTheMaster(t *testing.T) {
	full := fmt.Errorf("write: %w", syscall.ENOSPC)
	for _, c := range []struct {
		name   string
		j      journals
		change func(*world)
		from   node.ID
		load   map[string]any
		want   string
		did    []string
		master int
	}{
		{name: "own", want: "\xc2", did: []string{"take web1"}},
		{name: "relayed", from: "c", load: map[string]any{"master_id": "b"}, want: "\xc2", did: []string{"take web1"}},
		{name: "needs Python", j: journals{take: returns.ErrPython}, want: byMaster,
			did: []string{"take web1", "mend web1", "answered web1"}, master: 1},
		{name: "disk full: another node keeps it", j: journals{take: full}, want: "\xc0",
			did: []string{"take web1", "hand off for a"}},
		{name: "disk full everywhere", j: journals{take: full, off: full}, want: "",
			did: []string{"take web1", "hand off for a"}},
		{name: "journal full everywhere", j: journals{take: spool.ErrFull, off: full}, want: "",
			did: []string{"take web1", "hand off for a"}},
		{name: "closed", j: journals{take: spool.ErrClosed, off: full}, want: "",
			did: []string{"take web1", "hand off for a"}},
		{name: "too large for a journal", j: journals{take: spool.ErrTooLarge}, want: byMaster,
			did: []string{"take web1", "answered web1"}, master: 1},
		{name: "busy", j: journals{take: spool.ErrBusy}, want: byMaster, did: []string{"take web1", "answered web1"},
			master: 1},
		{name: "relayed, disk full: its node keeps it", from: "c", j: journals{take: full}, want: "",
			did: []string{"take web1"}},
		// bad load, which is not sealed
		{name: "malformed", j: journals{take: returns.ErrMalformed}, want: "", did: []string{"take web1"}},
		{
			name: "needs Python, which is down", j: journals{take: returns.ErrPython,
				defers: true}, change: func(w *world) { w.masterErr = upstream.ErrDown },
			want: "\xc0", did: []string{"take web1", "mend web1", "later"}, master: 1,
		},
		{
			name: "needs Python, which hangs", j: journals{take: returns.ErrPython,
				defers: true}, change: func(w *world) { w.masterErr = upstream.ErrTimeout },
			want: "\xc0", did: []string{"take web1", "mend web1", "later"}, master: 1,
		},
		{
			name: "needs Python, which is down, disk full: another node keeps it", j: journals{take: returns.ErrPython,
				late: full}, change: func(w *world) { w.masterErr = upstream.ErrDown },
			want: "\xc0", did: []string{"take web1", "mend web1", "later", "hand off for a"}, master: 1,
		},
		{
			name: "needs Python, whose disk is full", j: journals{take: returns.ErrPython, defers: true, stores: full},
			want: "\xc0", did: []string{"take web1", "mend web1", "later"},
		},
		{
			name: "needs Python, whose disk is full, and is not to be kept: another node keeps it",
			j:    journals{take: returns.ErrPython, late: returns.ErrPython, stores: full},
			want: "\xc0", did: []string{"take web1", "mend web1", "later", "hand off for a"},
		},
		{
			name: "none may keep it: another node gets it", j: journals{take: returns.ErrPython,
				late: returns.ErrPython}, change: func(w *world) { w.masterErr = upstream.ErrDown },
			want: byMaster, did: []string{"take web1", "mend web1", "later"}, master: 1,
		},
		{
			name: "publisher is gone", change: func(w *world) {
				w.view.Nodes[1].Alive = false
			}, load: map[string]any{"master_id": "b"},
			want: "\xc0", did: []string{"keep for b"},
		},
		{
			name: "publisher does not answer", change: func(w *world) {
				w.peerErr["b"] = errors.New("cut")
			}, load: map[string]any{"master_id": "b"},
			want: "\xc0", did: []string{"keep for b"},
		},
		{
			name: "publisher is gone, disk full", j: journals{keep: full}, change: func(w *world) {
				w.view.Nodes = w.view.Nodes[:2]
				w.view.Nodes[1].Alive = false
			},
			load: map[string]any{"master_id": "b"}, want: "\xc0", did: []string{"keep for b", "hand off for b"},
		},
		{
			name: "publisher is gone, too large for a journal", j: journals{keep: spool.ErrTooLarge},
			change: func(w *world) { w.view.Nodes = w.view.Nodes[:2]; w.view.Nodes[1].Alive = false },
			load:   map[string]any{"master_id": "b"}, want: "\xc2", did: []string{"keep for b", "take web1"},
		},
		{name: "another command", load: map[string]any{"cmd": "_pillar"}, want: byMaster, master: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.cfg.Returns = &c.j
			if c.change != nil {
				c.change(w)
			}
			load := map[string]any{"cmd": "_return", "jid": "20261121000000000001", "master_id": "a", "return": true}
			for k, v := range c.load {
				load[k] = v
			}
			check.Equal(t, w.answer(w.send(t, w.request(t, load), c.from)), c.want, "answered")
			check.Equal(t, len(w.atMaster), c.master, "the master")
			if len(c.j.taken) != len(c.did) {
				t.Fatalf("did %q, want %q", c.j.taken, c.did)
			}
			for i := range c.did {
				if c.j.taken[i] != c.did[i] {
					t.Errorf("did %q, want %q", c.j.taken, c.did)
				}
			}
		})
	}
}

// bus is an Events that ends each load in one way.
type bus struct {
	end   error
	taken int
}

func (b *bus) Take(_ string, _ []byte, _ time.Time, done func([]byte, error)) {
	b.taken++
	done([]byte{0xc0}, b.end)
}

func TestEventWithoutTheMaster(t *testing.T) {
	for _, c := range []struct {
		name   string
		bus    *bus
		load   map[string]any
		change func(*world)
		want   string
		taken  int
		master int
	}{
		{name: "fired", bus: &bus{}, want: "\xc0", taken: 1},
		{name: "needs Python", bus: &bus{end: events.ErrPython}, want: byMaster, taken: 1, master: 1},
		{
			name: "needs Python, and nobody's is there", bus: &bus{end: events.ErrPython},
			change: func(w *world) {
				w.masterErr = upstream.ErrDown
				w.proxy.cfg.ForwardTimeout = -1 // nobody waits for the master to be back
			}, taken: 1, master: 1,
		},
		{name: "malformed", bus: &bus{end: events.ErrMalformed}, taken: 1},
		{name: "perhaps fired", bus: &bus{end: events.ErrUnsure}, taken: 1},
		{name: "another command", bus: &bus{}, load: map[string]any{"cmd": "_pillar"}, want: byMaster, master: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.cfg.Events = c.bus
			w.view.Nodes = w.view.Nodes[:2] // whoever owns the minion's id, it is this node or one that cannot be reached
			w.view.Nodes[1].Alive = false
			if c.change != nil {
				c.change(w)
			}
			load := map[string]any{"cmd": "_minion_event", "tag": "my/tag", "data": map[string]any{}}
			for k, v := range c.load {
				load[k] = v
			}
			check.Equal(t, w.answer(w.send(t, w.request(t, load), "")), c.want, "answered")
			if len(w.atMaster) != c.master || c.bus.taken != c.taken {
				t.Errorf("the master got %d, the bus %d", len(w.atMaster), c.bus.taken)
			}
		})
	}
}

func TestKeptLoadReachesTheMaster(t *testing.T) {
	w := newWorld(t)
	other := newKey(t)
	w.masterKey, w.stale = &other, true // a 3006 worker that has another key than the file says
	load := []byte("\x81\xa3cmd\xa7_return")
	require.NoError(t, w.proxy.Return(context.Background(), "web1", load))
	env, err := saltwire.ParseEnvelope(w.atMaster[len(w.atMaster)-1])
	if err != nil || env.ID != "web1" || env.Version != 3 {
		t.Fatalf("envelope %+v, %v", env, err)
	}
	plain, err := saltcrypt.NewCrypticle(other).Open(nil, env.Load)
	if err != nil || !bytes.Equal(plain, load) {
		t.Errorf("the master got %q, %v", plain, err)
	}
	check.ErrorIs(t, w.proxy.Return(context.Background(), "web2", load), returns.ErrGone, "a minion without key")
	w.masterErr = upstream.ErrDown
	if err := w.proxy.Return(context.Background(), "web1", load); !errors.Is(err, upstream.ErrDown) ||
		!errors.Is(err, returns.ErrNotAsked) {
		t.Errorf("a master that is down: %v", err)
	}
	w.masterErr = upstream.ErrTimeout // it had it
	if err := w.proxy.Return(context.Background(), "web1", load); !errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, returns.ErrNotAsked) {
		t.Errorf("a master that does not answer: %v", err)
	}
}

// What may take long is waited for as long as minions wait by Salt's defaults, at the master and at a peer, and nothing
// else is.
func TestDeadline_LongCalls(t *testing.T) {
	at := time.Now()
	for _, c := range []struct {
		cmd     string
		forward time.Duration
		want    time.Duration
	}{
		{"_pillar", time.Minute, longTimeout}, {"_pillar", time.Hour, time.Hour}, {"minion_runner", time.Second, longTimeout},
		{"_file_list", time.Minute, longTimeout}, {"_mine_get", time.Minute, time.Minute},
		{"_minion_event", time.Minute, time.Minute},
	} {
		p := &Proxy{cfg: Config{ForwardTimeout: c.forward}, ctx: t.Context()}
		one := &call{request: &request{at: at}, peek: saltwire.Peek{Cmd: c.cmd}}
		ctx, cancel := p.peerContext(one, "b")
		deadline, _ := ctx.Deadline()
		cancel()
		if until := p.masterDeadline(one); until.Sub(at) != c.want || deadline.Sub(at) != c.want {
			t.Errorf("%s with %s: %s at the master, %s at a peer", c.cmd, c.forward, until.Sub(at), deadline.Sub(at))
		}
	}
}

// The return of a queued job goes on under the id of the job that was published; a signed one stays as it was signed.
func TestReturnOfAQueuedJob(t *testing.T) {
	const cut, whole = "20261121000000000001", "20261121000000000001_4711"
	for name, c := range map[string]struct {
		load       map[string]any
		jid, inner string
	}{
		"cut":    {jid: whole, inner: whole},
		"signed": {load: map[string]any{"sig": "s"}, jid: whole, inner: cut},
		"of another job": {load: map[string]any{"jid": "20261121000000000002"}, jid: "20261121000000000002",
			inner: "20261121000000000002"},
		"of a schedule": {load: map[string]any{"jid": "req"}, jid: "req", inner: "req"},
		"whole":         {load: map[string]any{"jid": whole}, jid: whole, inner: whole},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			var j journals
			w.proxy.cfg.Returns = &j
			w.proxy.cfg.WholeJob = func(jid, masterID string) string {
				if jid == cut && masterID == "a" {
					return whole
				}
				return ""
			}
			load := map[string]any{"cmd": "_return", "jid": cut, "master_id": "a", "return": true}
			maps.Copy(load, c.load)
			check.Equal(t, w.answer(w.send(t, w.request(t, load), "")), "\xc2", "answered")
			if len(j.requests) != 1 || j.requests[0].JID != c.jid {
				t.Fatalf("taken %+v", j.requests)
			}
			if peek, err := saltwire.PeekLoad(j.requests[0].Load); err != nil || peek.JID != c.inner || peek.ID != "web1" {
				t.Errorf("load %+v, %v", peek, err)
			}
		})
	}
}
