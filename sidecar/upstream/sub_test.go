package upstream

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

func TestSubClient_OrderAndReconnect(t *testing.T) {
	all := make(chan struct{}) // of the first connection has come: what is closed before that may be thrown away
	publish := func(c *fakeConn, _ []byte) {
		for i := range 100 {
			_ = c.WriteMessage([]byte(fmt.Sprintf("%d-%d", c.n, i)))
		}
		if c.n == 1 {
			select {
			case <-all:
			case <-time.After(10 * time.Second):
			}
			c.Close()
		}
	}
	f := startFakeType(t, "PUB", "127.0.0.1:0", publish)
	got := make(chan string, 300)
	var connects, losses atomic.Int32
	c := NewSubClient(SubConfig{
		Addr: f.addr(),
		OnMessage: func(parts [][]byte) {
			got <- string(parts[0])
			if string(parts[0]) == "1-99" {
				close(all)
			}
		},
		OnConnect:    func() { connects.Add(1) },
		OnDisconnect: func(error) { losses.Add(1) },
	})
	require.NoError(t, c.Open(context.Background()))
	for n := range 2 {
		for i := range 100 {
			want := fmt.Sprintf("%d-%d", n+1, i)
			select {
			case m := <-got:
				if m != want {
					t.Fatalf("got %s, want %s", m, want)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("%s did not come", want)
			}
		}
	}
	if !c.Up() {
		t.Error("not up while connected")
	}
	require.NoError(t, c.Close())
	if connects.Load() != 2 || losses.Load() != 2 || c.Up() {
		t.Errorf("%d connects, %d losses, up %v", connects.Load(), losses.Load(), c.Up())
	}
}

func TestSubCloseWhileDown(t *testing.T) {
	f := startFake(t, "127.0.0.1:0", echo)
	addr := f.addr()
	f.stop()
	c := NewSubClient(SubConfig{Addr: addr, BackoffMin: time.Hour})
	require.NoError(t, c.Open(context.Background()))
	require.NoError(t, c.Close())
}
