package consensus

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"saltclusterd/integration/require"
)

// writeLog makes a log of many entries, larger than a few pages, and returns its file.
func writeLog(t *testing.T, dir string) string {
	t.Helper()
	s, err := openStorage(dir, time.Second, hclog.NewNullLogger())
	require.NoError(t, err)
	for i := uint64(1); i <= 400; i++ {
		require.NoError(t, s.logs.StoreLog(&raft.Log{Index: i, Term: 1, Data: make([]byte, 3000)}))
	}
	require.NoError(t, s.close())
	return filepath.Join(dir, logFile)
}

// A log that a disk has damaged is refused with a sentence, and neither opened by half nor the end of the process.
func TestDamagedLogIsRefused(t *testing.T) {
	pristine, err := os.ReadFile(writeLog(t, t.TempDir()))
	require.NoError(t, err)
	size := len(pristine)
	for name, damage := range map[string]func(b []byte) []byte{
		"empty pages at the end": func(b []byte) []byte { clear(b[size/2:]); return b },
		"cut to the half":        func(b []byte) []byte { return b[:size/2] },
		"cut within a page":      func(b []byte) []byte { return b[:size-size/3-100] },
		"garbage at the end": func(b []byte) []byte {
			for i := size / 2; i < size; i++ {
				b[i] ^= byte(i*7 + 1)
			}
			return b
		},
		"both heads gone": func(b []byte) []byte { clear(b[:8192]); return b },
		"only two pages":  func(b []byte) []byte { return b[:8192] },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, logFile)
			require.NoError(t, os.WriteFile(path, damage(append([]byte(nil), pristine...)), 0o600))
			s, err := openStorage(dir, time.Second, hclog.NewNullLogger())
			if err == nil {
				_ = s.close()
			}
			if !errors.Is(err, ErrDamaged) {
				t.Errorf("open: %v", err)
			}
		})
	}
}
