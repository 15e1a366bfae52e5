package relay

import (
	"bytes"
	"context"
	"net/netip"
	"syscall"
	"testing"

	"saltclusterd/gossip/node"
)

// parrot answers at once.
type parrot struct{}

func (parrot) ServeRelayed(_ context.Context, _ node.ID, _ netip.AddrPort, body []byte, to Hands) {
	to.Reply(body[:min(len(body), 128)])
}

func (e parrot) ServeSignIn(ctx context.Context, from node.ID, remote netip.AddrPort, body []byte, to Hands) {
	e.ServeRelayed(ctx, from, remote, body, to)
}

// BenchmarkRelay is a return on its way to the publisher of its job and the answer back, a hundred at a time: CPU of
// both nodes.
func BenchmarkRelay(b *testing.B) {
	c := start(b, parrot{}, true)
	body, remote := bytes.Repeat([]byte("x"), 600), netip.MustParseAddrPort("192.0.2.7:1234")
	cpu := func() int64 {
		var ru syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
		return ru.Utime.Nano() + ru.Stime.Nano()
	}
	before := cpu()
	b.SetParallelism(50)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(b.Context(), "b", body, remote); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(cpu()-before)/1000/float64(b.N), "cpu-µs/op")
}
