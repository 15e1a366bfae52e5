package sidecar

import (
	"context"
	"errors"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/upstream"
)

func atMaster(w *world) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.atMaster)
}

// ask sends a request and returns where its answer will come.
func (w *world) ask(t *testing.T, cmd string) <-chan []byte {
	t.Helper()
	got := make(chan []byte, 2)
	w.proxy.openRequest(&request{body: w.request(t, map[string]any{"cmd": cmd}), at: time.Now(), to: respondTo(got)})
	return got
}

func TestHoldFiles_NewRequests(t *testing.T) {
	w := newWorld(t)
	release, err := w.proxy.HoldFiles(t.Context())
	require.NoError(t, err)
	var waiting []<-chan []byte
	for _, cmd := range []string{"_pillar", "_serve_file", "_file_list"} {
		waiting = append(waiting, w.ask(t, cmd))
	}
	if !w.opened(<-w.ask(t, "_master_opts")) {
		t.Error("a request that reads no files waited")
	}
	if n, size := atMaster(w), w.proxy.files.countWaiting(); n != 1 || size != 3 {
		t.Errorf("%d requests at the master, %d wait", n, size)
	}
	release()
	release()
	for _, got := range waiting {
		if !w.opened(<-got) {
			t.Error("not answered after the change")
		}
	}
	again, err := w.proxy.HoldFiles(t.Context())
	require.NoError(t, err)
	again()
}

// A request that the master is working on ends before the change begins.
func TestHoldFiles_PendingAtMaster(t *testing.T) {
	w := newWorld(t)
	answer := make(chan struct{})
	w.busy = answer
	got := w.ask(t, "_pillar")
	held := make(chan func())
	go func() {
		release, err := w.proxy.HoldFiles(context.Background())
		if err != nil {
			release = func() {}
		}
		held <- release
	}()
	select {
	case <-held:
		t.Fatal("the change began under a request")
	case <-time.After(20 * time.Millisecond):
	}
	close(answer)
	release := <-held
	if !w.opened(<-got) {
		t.Error("not answered")
	}
	release()
}

// Whatever becomes of a request, the gate does not count it for ever.
func TestGateForgetsWhatFailed(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"the master is down": func(w *world) { w.masterErr = upstream.ErrDown },
		"the disk is full":   func(w *world) { w.diskErr = errors.New("no space") },
		"everybody is down": func(w *world) {
			w.masterErr, w.peerErr["b"], w.peerErr["c"] = upstream.ErrDown, errPublisher, errPublisher
		},
		"another session key":  func(w *world) { k := newKey(t); w.masterKey = &k },
		"an older session key": func(w *world) { k := newKey(t); w.masterKey, w.stale = &k, true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			prepare(w)
			<-w.ask(t, "_pillar")
			began := time.Now()
			release, err := w.proxy.HoldFiles(t.Context())
			require.NoError(t, err)
			release()
			if w.proxy.files.inside != 0 || time.Since(began) > gateTimeout {
				t.Errorf("%d requests are said to be under way", w.proxy.files.inside)
			}
		})
	}
}

func TestHoldEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	release, err := w.proxy.HoldFiles(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.proxy.HoldFiles(ctx); err == nil {
		t.Error("two hold at a time")
	}
	release()
}
