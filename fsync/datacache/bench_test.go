package datacache

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/msgpack"
	"saltclusterd/fsync/replica"
	"saltclusterd/integration/require"
)

// BenchmarkJoiner is how long a node that joins takes to have the data of 10,000 minions, 6 KiB each, which two others
// have.
func BenchmarkJoiner(b *testing.B) {
	const minions = 10_000
	grains := append(msgpack.AppendShort([]byte{0x81}, "grains"), 0xc5, 0x10, 0x00)
	grains = append(grains, bytes.Repeat([]byte{'g'}, 4096)...)
	pillar := append(msgpack.AppendShort([]byte{0x81}, "pillar"), 0xc5, 0x08, 0x00)
	pillar = append(pillar, bytes.Repeat([]byte{'p'}, 2048)...)
	for b.Loop() {
		b.StopTimer()
		dir := b.TempDir()
		w := newWorld(b)
		for i := range minions {
			w.keys[fmt.Sprintf("minion-%05d", i)] = "k"
		}
		w.scan, w.pace = 0, replica.Pace{}
		n := w.add("a", 3006, dir+"/a")
		for id := range w.keys {
			n.stock(id, grains, pillar)
		}
		n.store.scan()
		whole := func(n *testNode) bool { return n.store.Status().Minions == minions }
		m := w.add("b", 3007, dir+"/b")
		w.poll("the second has all", func() bool { return whole(m) })
		b.StartTimer()
		began := time.Now()
		j := w.add("c", 3008, dir+"/c")
		for deadline := began.Add(5 * time.Minute); !whole(j); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				b.Fatal("never whole")
			}
		}
		b.StopTimer()
		w.close()
		b.StartTimer()
	}
}

// BenchmarkChange is what a node does for a minion that sends its mine (4 KiB): another one, and the same once more.
func BenchmarkChange(b *testing.B) {
	for name, then := range map[string][2][]byte{"new": {sized(4096), sized(4095)}, "same": {sized(4096), sized(4096)}} {
		b.Run(name, func(b *testing.B) {
			w, n := mineNode(b, 3008, false)
			w.setKey("web1", "k")
			began, i := cpu(b), 0
			for b.Loop() {
				n.mustChange("web1", always(then[i%2]))
				i++
			}
			b.ReportMetric(float64(cpu(b)-began)/float64(i), "cpu-ns/op")
		})
	}
}

// cpu is how long this process has worked.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
