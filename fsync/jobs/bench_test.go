package jobs

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"saltclusterd/integration/patience"
)

// BenchmarkReturn is what a return costs that goes from one node to two replicas: CPU of all three, transport left out.
func BenchmarkReturn(b *testing.B) {
	w := newWorld(b)
	slow := func(c *Config) { c.Timing = Timing{Quiet: time.Hour, Scan: time.Hour} }
	one, two, three := w.add("a", slow), w.add("b", slow), w.add("c", slow)
	w.quiet()
	jid := w.jid()
	one.publish(jid)
	data := ret(strings.Repeat("x", 100))
	var before, after syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	b.ResetTimer()
	for i := range b.N {
		one.store.Stored(jid, fmt.Sprint("minion-", i), Return{Data: data}, false)
	}
	for _, n := range []*testNode{two, three} {
		patience.WaitNil(b, func() error {
			if s, err := n.store.disk.look(jid); err != nil || s.returns() < b.N {
				time.Sleep(200 * time.Millisecond)
				return fmt.Errorf("%d of %d, %v", s.returns(), b.N, err)
			}
			return nil
		})
	}
	b.StopTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := func(r syscall.Rusage) int64 { return r.Utime.Nano() + r.Stime.Nano() }
	b.ReportMetric(float64(cpu(after)-cpu(before))/1e3/float64(b.N), "µs-cpu/op")
}
