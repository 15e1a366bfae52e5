package keydir

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// BenchmarkScan looks at 10,000 keys: for the first time, and again when nothing has changed.
func BenchmarkScan(b *testing.B) {
	const keys = 10_000
	root := b.TempDir()
	for p := range places {
		require.NoError(b, os.Mkdir(filepath.Join(root, p.String()), 0o700))
	}
	text := []byte(keyTexts()[0])
	for i := range keys {
		require.NoError(b, os.WriteFile(filepath.Join(root, "minions", fmt.Sprintf("minion-%05d", i)), text, 0o600))
	}
	time.Sleep(2 * racy)
	odd := &invalidEntries{log: slog.New(slog.DiscardHandler)}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, newDisk(root, odd).scanAll())
		}
	})
	b.Run("again", func(b *testing.B) {
		d := newDisk(root, odd)
		require.NoError(b, d.scanAll())
		for b.Loop() {
			require.NoError(b, d.scanAll())
		}
	})
}
