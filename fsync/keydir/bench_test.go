package keydir

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkScan looks at 10,000 keys: for the first time, and again when nothing has changed.
func BenchmarkScan(b *testing.B) {
	const keys = 10_000
	root := b.TempDir()
	for p := range places {
		if err := os.Mkdir(filepath.Join(root, p.String()), 0o700); err != nil {
			b.Fatal(err)
		}
	}
	text := []byte(keyTexts()[0])
	for i := range keys {
		if err := os.WriteFile(filepath.Join(root, "minions", fmt.Sprintf("minion-%05d", i)), text, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	time.Sleep(2 * racy)
	odd := &invalidEntries{log: slog.New(slog.DiscardHandler)}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			if err := newDisk(root, odd).scanAll(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("again", func(b *testing.B) {
		d := newDisk(root, odd)
		if err := d.scanAll(); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := d.scanAll(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
