package upstream_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster/mastertest"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// ping is {"enc":"clear","load":{"cmd":"ping"},"version":3}, which masters answer with the load's own text.
func ping() []byte {
	load := saltwire.AppendMapHeader(nil, 1)
	load = saltwire.AppendRaw(saltwire.AppendRaw(load, "cmd"), "ping")
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3,
		HasVersion: true})
}

func TestStockMaster(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) { testStockMaster(t, mastertest.Start(t, mastertest.Options{Version: v})) })
	}
}

func testStockMaster(t *testing.T, m *mastertest.Master) {
	var ups, subs atomic.Int32
	c := upstream.NewReqClient(upstream.ReqConfig{Addr: m.ReqAddr(), OnUp: func() { ups.Add(1) }, MaxConns: 8})
	s := upstream.NewSubClient(upstream.SubConfig{
		Addr: m.PubAddr(), OnMessage: func([][]byte) {}, OnConnect: func() { subs.Add(1) },
	})
	for _, open := range []func(context.Context) error{c.Open, s.Open} {
		require.NoError(t, open(context.Background()))
	}
	defer c.Close()
	defer s.Close()
	begun := time.Now()
	const calls = 200
	results := make(chan error, calls)
	for range calls {
		c.Go(context.Background(), time.Now().Add(time.Minute), "", ping(), func(reply []byte, err error) {
			if err == nil && len(reply) == 0 {
				err = errors.New("empty reply")
			}
			results <- err
		})
	}
	for range calls {
		require.NoError(t, <-results)
	}
	t.Logf("%d pings in %v over %d connections", calls, time.Since(begun), c.Stats().Conns)
	patience.WaitFor(t, "the master", func() bool { return s.Up() && subs.Load() == 1 })

	m.Kill()
	patience.WaitFor(t, "the master", func() bool { return !c.Up() && !s.Up() })
	patience.WaitFor(t, "the master", func() bool {
		_, err := c.Do(context.Background(), ping())
		return errors.Is(err, upstream.ErrDown)
	})
	m.Start()
	patience.WaitFor(t, "the master", func() bool { return c.Up() && s.Up() && ups.Load() == 2 && subs.Load() == 2 })
	if _, err := c.Do(context.Background(), ping()); err != nil {
		t.Error(err)
	}
}

func BenchmarkStockPing(b *testing.B) {
	for _, v := range mastertest.Versions(b) {
		b.Run(v, func(b *testing.B) {
			m := mastertest.Start(b, mastertest.Options{Version: v})
			c := upstream.NewReqClient(upstream.ReqConfig{Addr: m.ReqAddr()})
			require.NoError(b, c.Open(context.Background()))
			defer c.Close()
			body := ping()
			for b.Loop() {
				if _, err := c.Do(context.Background(), body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
