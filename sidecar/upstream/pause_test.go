package upstream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

func TestSubClient_Takeover(t *testing.T) {
	f := startFakeType(t, "PUB", "127.0.0.1:0", func(c *fakeConn, _ []byte) {
		go func() {
			for i := 0; c.WriteMessage([]byte("topic"), []byte(fmt.Sprint(i))) == nil; i++ {
				time.Sleep(100 * time.Microsecond)
			}
		}()
	})
	got := make(chan string, 1<<16)
	connects := 0
	newClient := func() *SubClient {
		return NewSubClient(SubConfig{
			Addr: f.addr(), OnMessage: func(parts [][]byte) { got <- string(parts[1]) }, OnConnect: func() { connects++ },
		})
	}
	c := newClient()
	require.NoError(t, c.Open(t.Context()))
	next := 0
	for range 5 {
		for range 50 {
			select {
			case m := <-got:
				if m != fmt.Sprint(next) {
					t.Fatalf("got %s, want %d", m, next)
				}
				next++
			case <-time.After(10 * time.Second):
				t.Fatalf("%d did not come", next)
			}
		}
		hold(t, c)
		c.Unpause() // once for nothing
		hold(t, c)
		record, fd, err := c.Export()
		if err != nil || fd < 0 {
			t.Fatal(fd, err)
		}
		carried, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
		require.NoError(t, err)
		other := newClient()
		require.NoError(t, other.Import(record, carried))
		c.Hand()
		require.NoError(t, other.Open(t.Context()))
		require.NoError(t, c.Close())
		c = other
	}
	require.NoError(t, c.Close())
	if connects != 1 {
		t.Errorf("%d connects", connects)
	}
}

// hold pauses a client and sees that it stands still.
func hold(t *testing.T, c *SubClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.Pause(ctx))
}

func FuzzDecodeClient(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if z, err := decodeClient(b, nil, NewSubClient(SubConfig{}).clientOptions()); err == nil && z == nil {
			t.Fatal("neither a client nor an error")
		}
	})
}
