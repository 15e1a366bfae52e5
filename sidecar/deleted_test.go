package sidecar

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// forget deletes the minion's key.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accepted = false
}

// TestDeletedWhileItWaits: a request may wait for minutes, and whose key is deleted meanwhile is not heard any more.
func TestDeletedWhileItWaits(t *testing.T) {
	refused := func(t *testing.T, w *world, reply []byte) {
		t.Helper()
		if !bytes.Equal(reply, saltwire.BadLoad()) || atMaster(w) > 0 {
			t.Errorf("answered %q, %d requests at the master", reply, atMaster(w))
		}
	}
	t.Run("for a master", func(t *testing.T) {
		w := newWorld(t)
		w.masters(false)
		answered := make(chan []byte, 1)
		go func() {
			answered <- w.send(t, w.request(t, map[string]any{"cmd": "_minion_event", "tag": "x", "data": map[string]any{}}), "")
		}()
		w.awaited(t, 1)
		w.forget()
		w.masters(true)
		w.proxy.NotifyMasters()
		refused(t, w, <-answered)
	})
	t.Run("for the roots", func(t *testing.T) {
		w := newWorld(t)
		release, err := w.proxy.HoldFiles(t.Context())
		require.NoError(t, err)
		got := w.ask(t, "_pillar")
		w.forget()
		release()
		refused(t, w, <-got)
		if release, err = w.proxy.HoldFiles(t.Context()); err != nil {
			t.Fatal(err)
		}
		release()
		if w.proxy.files.inside != 0 {
			t.Errorf("%d requests are said to be under way", w.proxy.files.inside)
		}
	})
}
