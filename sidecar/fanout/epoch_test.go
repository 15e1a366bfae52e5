package fanout

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// addEpoch adds a publication that its origin sealed under an epoch, as Hub.Local does.
func addEpoch(t *testing.T, o *outbox, text string, epoch uint64) {
	t.Helper()
	b, err := appendPublication(nil, Publication{Plain: []byte(text)})
	require.NoError(t, err)
	o.addRecord(kindPublication, 0, b, appendEpoch(nil, 0, epoch))
}

// TestPublication_WaitsForItsEpoch checks that a node which lacks the epoch of a publication does not deliver it, and
// delivers all of them in order when it has it.
func TestPublication_WaitsForItsEpoch(t *testing.T) {
	out := newOutbox(1000, 1<<20, time.Minute, time.Now)
	p := newPeerSide(t)
	p.epoch.Store(3)
	add(t, out, "of a node of before")
	addEpoch(t, out, "three", 3)
	addEpoch(t, out, "four", 4)
	addEpoch(t, out, "after", 4)
	keepLink(t, p, out, "run1")
	patience.WaitNil(t, wantReceived(p, "a:of a node of before", "a:three"))
	held := func() { // the link is made anew, and nothing is delivered
		t.Helper()
		p.in.mu.Lock()
		o := p.in.origins["a"]
		p.in.mu.Unlock()
		o.mu.Lock()
		o.cancel()
		o.mu.Unlock()
		patience.WaitNil(t, wantReceived(p, "a:of a node of before", "a:three"))
	}
	held()
	p.epoch.Store(4)
	patience.WaitNil(t, wantReceived(p, "a:of a node of before", "a:three", "a:four", "a:after"))
}

// A publication of the last minute that a peer gives to a node which has just started, or whose peer has, waits for the
// epoch as well: the node would give it to new subscribers under the one that it has.
func TestEarlier_WaitsForItsEpoch(t *testing.T) {
	p := newPeerSide(t)
	p.epoch.Store(4)
	var list bytes.Buffer
	require.NoError(t, p.link(newOutbox(1, 1, time.Minute, time.Now), "run").writeStarts(&list))
	for epoch, want := range map[uint64]int{3: 0, 4: 1} {
		p := newPeerSide(t)
		p.epoch.Store(epoch)
		over, cancel := context.WithCancel(t.Context())
		cancel() // it does not wait
		_ = p.in.takeRecords(over, "a", "run", &origin{run: "run"}, 0, true, bufio.NewReader(bytes.NewReader(list.Bytes())),
			httptest.NewRecorder())
		if n := len(p.own); n != want {
			t.Errorf("under epoch %d: %d are taken, want %d", epoch, n, want)
		}
	}
}

// TestHub_TellsTheEpoch reads what a hub sends its peers: each publication stands behind the epoch that was in force
// after the wait for a revocation.
func TestHub_TellsTheEpoch(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 6, 0)
	f.cfg.Hold = func() { f.begin(t, 7, 0) }
	require.NoError(t, f.publish(Publication{Plain: nudge}))
	recs, _, _ := f.out.recordsAfter(0, make([]record, 0, 10))
	var kinds []kind
	for _, rec := range recs {
		for r := bufio.NewReader(bytes.NewReader(rec.buf)); ; {
			h, payload, err := readRecord(r)
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			kinds = append(kinds, h.kind)
			if h.kind != kindEpoch {
				continue
			}
			if n, err := parseEpoch(payload); n != 7 || err != nil || h.seq != 0 {
				t.Errorf("epoch %d, sequence %d, %v", n, h.seq, err)
			}
		}
	}
	if len(kinds) != 2 || kinds[0] != kindEpoch || kinds[1] != kindPublication {
		t.Errorf("records of kinds %v", kinds)
	}
}

// TestHub_WithholdsWhileItIsBehind checks that a node which may lack a revocation delivers nothing, and that its peers
// get what its master publishes.
func TestHub_WithholdsWhileItIsBehind(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 6, 0)
	behind := true
	f.cfg.Withhold = func() bool { return behind }
	for range 2 {
		require.NoError(t, f.publish(Publication{Plain: nudge}))
		f.remotePublication("b", Publication{Plain: nudge}, time.Now())
		behind = false
	}
	if n, _ := f.out.countHeld(); len(f.edge.pubs) != 2 || n != 2 {
		t.Errorf("%d delivered, %d for the peers, want 2 and 2", len(f.edge.pubs), n)
	}
}
