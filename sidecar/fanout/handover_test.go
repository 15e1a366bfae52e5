package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/late"
)

func freeze(t *testing.T, h *Hub) {
	t.Helper()
	require.NoError(t, h.Freeze(t.Context()))
}

func TestFreeze_Timeout(t *testing.T) {
	hub := newHubFixture(t)
	if !hub.in.waitThaw(t.Context()) { // a delivery that does not end
		t.Fatal("no record is delivered")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- hub.Freeze(ctx) }()
	select {
	case err := <-ended:
		t.Fatalf("frozen during a delivery: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("freeze returned %v", err)
	}
	if !hub.in.waitThaw(t.Context()) {
		t.Fatal("no record is delivered after the failed freeze")
	}
	hub.in.leave()
	hub.in.leave()
	add(t, hub.out, "not frozen")
	freeze(t, hub.Hub)
}

// A peer hears the old process's last records and the new one's first, each once, whichever process sends them.
func TestOutbox_Takeover(t *testing.T) {
	old, next := newHubFixture(t), newHubFixture(t)
	p := newPeerSide(t)
	keepLink(t, p, old.out, old.run)
	patience.WaitNil(t, connected(p))
	var want []string
	for i := range 20 {
		add(t, old.out, fmt.Sprint("old ", i))
		want = append(want, fmt.Sprint("a:old ", i))
	}
	freeze(t, old.Hub)
	add(t, old.out, "a frozen outbox takes nothing")
	require.NoError(t, next.Import(old.Export()))
	add(t, next.out, "new")
	keepLink(t, p, next.out, next.run) // while the old link still stands
	patience.WaitNil(t, wantReceived(p, append(want, "a:new")...))
	old.Hand()
}

// The records of a peer are taken once, by the old process or the new one.
func TestInbox_Takeover(t *testing.T) {
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	p := newPeerSide(t)
	keepLink(t, p, out, "run")
	patience.WaitNil(t, connected(p))
	for i := range 10 {
		add(t, out, fmt.Sprint(i))
	}
	patience.WaitNil(t, func() error {
		if n := len(p.received()); n < 10 {
			return fmt.Errorf("%d received", n)
		}
		return nil
	})
	hub, newHub := newHubFixture(t), newHubFixture(t)
	hub.Hub.in = p.in
	freeze(t, hub.Hub)
	add(t, out, "held back")
	require.NoError(t, newHub.Import(hub.Export()))
	if got := newHub.in.origins["a"]; got == nil || got.run != "run" || got.seq != 10 {
		t.Fatalf("%+v", got)
	}
	if got := p.received(); slices.Contains(got, "a:held back") {
		t.Fatal("delivered while frozen")
	}
	hub.Thaw()
	patience.WaitNil(t, func() error {
		if got := p.received(); !slices.Contains(got, "a:held back") {
			return fmt.Errorf("received %q", got)
		}
		return nil
	})
}

func FuzzImport(f *testing.F) {
	o := newOutbox(1000, 1<<20, time.Minute, time.Now)
	o.addRecord(kindSignIn, 1, appendSignIn(nil, "web1", 1), nil)
	h := &Hub{run: "run", out: o, in: &inbox{since: time.Now(), origins: map[node.ID]*origin{"b": {run: "x", seq: 4}}}}
	f.Add(h.Export())
	recent := func() *Hub {
		return &Hub{
			beats:     newBeats(time.Now),
			memory:    late.NewMemory(late.Limits{Age: MaxAge, Count: lateCount, Bytes: lateBytes}, time.Now),
			processes: late.NewProcesses(MaxAge, time.Now), again: make(chan struct{}, 1),
		}
	}
	full := recent()
	full.memory.Add(late.Publication{JID: "1", Plain: []byte("x"), Topics: []string{"y"}, At: time.Now()})
	full.processes.SignedIn(startedAt("web1", "a", time.Now()))
	f.Add(full.ExportRecent())
	f.Fuzz(func(t *testing.T, b []byte) {
		if r := recent(); r.ImportRecent(b) == nil && r.memory.Bytes() > len(b) {
			t.Fatalf("%d bytes out of %d", r.memory.Bytes(), len(b))
		}
		h := &Hub{out: newOutbox(1000, 1<<20, time.Minute, time.Now),
			in: &inbox{beats: &beats{now: time.Now}, origins: map[node.ID]*origin{}}}
		if err := h.Import(b); err == nil && h.out.next == 0 {
			t.Fatal("numbers begin at 1")
		}
	})
}
