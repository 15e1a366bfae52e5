package upstream

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func BenchmarkDo(b *testing.B) {
	f := startFake(b, "127.0.0.1:0", echo)
	c := openReq(b, ReqConfig{Addr: f.addr(), Registerer: prometheus.NewRegistry()})
	body := make([]byte, 700)
	waitUp(b, c, true)
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(context.Background(), body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := c.Do(context.Background(), body); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// TestAllocations: of a request to the master and its reply, the fake's own included. Unlike times they do not depend
// on the machine.
func TestAllocations(t *testing.T) {
	const ceiling = 12
	f := startFake(t, "127.0.0.1:0", echo)
	c := openReq(t, ReqConfig{Addr: f.addr(), Registerer: prometheus.NewRegistry()})
	waitUp(t, c, true)
	body := make([]byte, 700)
	one := func() {
		if _, err := c.Do(context.Background(), body); err != nil {
			t.Fatal(err)
		}
	}
	one()
	n := testing.AllocsPerRun(200, one)
	t.Logf("%.0f allocations", n)
	if n > ceiling {
		t.Errorf("%.0f allocations, at most %d", n, ceiling)
	}
}
