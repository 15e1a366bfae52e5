package returns

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/spool"
)

// TestHandOver: what was put aside goes to the node that is responsible for its job, with its tries; a damaged one
// stays.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute"], w.pyErr["held"] = context.DeadlineExceeded, context.DeadlineExceeded
	a, b := w.open("a"), w.open("b")
	keepOn(t, w, a, "mute", "held")
	a.unanswered.mu.Lock()
	for _, one := range a.unanswered.items {
		if one.Minion == "held" {
			one.asked, one.Tries = maxAsked, maxAsked
		}
	}
	a.unanswered.mu.Unlock()
	before, _ := a.Unanswered()
	if left, err := a.HandOver(t.Context()); left != 2 || !errors.Is(err, errNoOwner) {
		t.Fatalf("with nobody to take them: %d left, %v", left, err)
	}
	w.set(func() { w.nextKeeper, w.sendErr, w.pyGot = "b", errors.New("the answer is lost"), nil })
	if left, err := a.HandOver(t.Context()); left != 2 || err == nil {
		t.Fatalf("without an answer: %d left, %v", left, err)
	}
	w.set(func() { w.sendErr = nil })
	if left, err := a.HandOver(t.Context()); left != 0 || err != nil {
		t.Fatalf("%d left, %v", left, err)
	}
	if files, err := os.ReadDir(a.unanswered.dir); err != nil || len(files) > 0 {
		t.Errorf("left on disk: %v, %v", files, err)
	}
	after, _ := b.Unanswered()
	if len(after) != 2 {
		t.Fatalf("b has %+v", after)
	}
	for _, one := range after {
		i := slices.IndexFunc(before, func(was Unanswered) bool { return was.Minion == one.Minion })
		if i < 0 || !one.Received.Equal(before[i].Received) || one.JID != jid || one.Fun != "test.ping" ||
			!strings.Contains(one.Err, "put aside on a") {
			t.Errorf("%+v, and was %+v", one, before)
		}
		if held := one.Minion == "held"; one.Next.IsZero() != held || held && one.Tries != maxAsked {
			t.Errorf("%+v", one)
		}
	}
	w.set(func() {
		if len(w.pyGot) > 0 {
			t.Errorf("the master got %v without an operator", w.pyGot)
		}
		clear(w.pyErr)
	})
	if due, damaged := b.Again(); due != 2 || damaged != 0 {
		t.Errorf("%d due, %d damaged", due, damaged)
	}
	patience.WaitFor(t, "the answers", func() bool { return b.Aside() == 0 })
	w.set(func() {
		if slices.Sort(w.pyGot); !slices.Equal(w.pyGot, []string{"held", "mute"}) {
			t.Errorf("the master got %v", w.pyGot)
		}
	})
}

// TestHandOver_InvalidReturns: a file that is not a return, and a return under another minion's name, stay here.
func TestHandOver_InvalidReturns(t *testing.T) {
	w := newWorld(t)
	w.nextKeeper = "b"
	a, b := w.open("a"), w.open("b")
	r := request(t, "web1")
	if err := a.unanswered.putReturn(spool.Record{Received: r.Received, Minion: "web2", JID: r.JID, Load: r.Load},
		context.DeadlineExceeded, 1); err != nil {
		t.Fatal(err)
	}
	if left, err := a.HandOver(t.Context()); left != 1 || !errors.Is(err, errUnsound) {
		t.Errorf("%d left, %v", left, err)
	}
	list, _ := a.Unanswered()
	require.NoError(t, os.WriteFile(a.unanswered.path(list[0].ID), []byte("what"), 0o600))
	if left, err := a.HandOver(t.Context()); left != 1 || !errors.Is(err, errDamaged) {
		t.Errorf("%d left, %v", left, err)
	}
	if n := b.Aside(); n != 0 {
		t.Errorf("b has %d", n)
	}
	if _, err := a.Drop(list[0].ID); err != nil {
		t.Fatal(err)
	}
	if left, err := a.HandOver(t.Context()); left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
}

// TestHandOver_WaitForMaster: a return that the master is handling is not given to a second master.
func TestHandOver_WaitForMaster(t *testing.T) {
	w := newWorld(t)
	w.nextKeeper = "b"
	w.pyErr["mute"] = context.DeadlineExceeded
	a, b := w.open("a"), w.open("b")
	keepOn(t, w, a, "mute")
	asked, answer := make(chan struct{}), make(chan struct{})
	w.set(func() {
		delete(w.pyErr, "mute")
		w.pyDoes = func(string) { close(asked); w.mu.Unlock(); <-answer; w.mu.Lock() }
	})
	a.Again()
	<-asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if left, err := a.HandOver(ended); left != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d left, %v", left, err)
	}
	close(answer)
	if left, err := a.HandOver(t.Context()); left != 0 || err != nil {
		t.Errorf("%d left, %v", left, err)
	}
	if n := b.Aside(); n != 0 {
		t.Errorf("b has %d, which a's master has answered", n)
	}
}
