package scale

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

// BenchmarkDisk is what the disk below TMPDIR costs: an fsync, a MiB written and synced, a return in a sync of the
// whole file system.
func BenchmarkDisk(b *testing.B) {
	dir := b.TempDir()
	write := func(b *testing.B, size int) {
		f, err := os.Create(filepath.Join(dir, "file"))
		require.NoError(b, err)
		defer f.Close()
		block := make([]byte, size)
		for b.Loop() {
			if _, err := f.Write(block); err != nil {
				b.Fatal(err)
			}
			require.NoError(b, f.Sync())
		}
	}
	b.Run("fsync", func(b *testing.B) { write(b, 4096) })
	b.Run("MiB", func(b *testing.B) { write(b, 1<<20) })
	b.Run("return", func(b *testing.B) {
		var synced time.Duration
		n := 0
		for b.Loop() {
			job := filepath.Join(dir, fmt.Sprint("job", n))
			for i := range 500 {
				minion := filepath.Join(job, fmt.Sprint("minion", i))
				require.NoError(b, os.MkdirAll(minion, 0o755))
				require.NoError(b, os.WriteFile(filepath.Join(minion, "return.p"), []byte{0xc3}, 0o644))
			}
			d, err := os.Open(dir)
			require.NoError(b, err)
			began := time.Now()
			require.NoError(b, unix.Syncfs(int(d.Fd())))
			synced += time.Since(began)
			n += 500
			_ = d.Close()
		}
		b.ReportMetric(synced.Seconds()*1e6/float64(n), "µs/return")
	})
}
