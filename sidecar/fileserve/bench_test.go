package fileserve_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

const megabyte = 1 << 20

// hot are the requests of a fleet that applies states, and how many allocations each may take once it is warm.
var hot = []struct {
	name, cmd string
	fields    map[string]any
	bytes     int64
	ceiling   float64
}{
	{"chunk", "_serve_file", map[string]any{"path": "dir/big", "loc": megabyte}, megabyte, 16},
	{"first chunk", "_serve_file", map[string]any{"path": "dir/big", "loc": 0}, megabyte, 20},
	{"small file", "_serve_file", map[string]any{"path": "dir/1", "loc": 0}, 0, 20},
	{"end of a file", "_serve_file", map[string]any{"path": "dir/1", "loc": 6}, 0, 16},
	{"hash", "_file_hash", map[string]any{"path": "dir/big"}, 0, 16},
	{"hash and stat", "_file_hash_and_stat", map[string]any{"path": "dir/1"}, 0, 16},
	{"find", "_file_find", map[string]any{"path": "dir/1"}, 0, 14},
	{"not there", "_file_find", map[string]any{"path": "dir/nothing.sls"}, 0, 14},
	{"list of 1,000", "_file_list", nil, 0, 12},
	{"environments", "_file_envs", nil, 0, 10},
}

func fleetSite(t testing.TB) *site {
	s := newSite(t, megabyte)
	s.put("dir/big", strings.Repeat("0123456789abcdef", 4*megabyte/16))
	for i := range 1000 {
		s.put(fmt.Sprintf("dir/%d", i), fmt.Sprintf("file %d", i%10))
	}
	s.now = time.Now().Add(10 * time.Second) // the files are old, lists that are written now are young
	return s
}

func loadOf(t testing.TB, cmd string, fields map[string]any) []byte {
	t.Helper()
	load := map[string]any{"cmd": cmd, "saltenv": "base", "id": "web1", "nonce": strings.Repeat("0", 32), "ts": 1,
		"tok": strings.Repeat("t", 256)}
	for k, v := range fields {
		load[k] = v
	}
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	require.NoError(t, err)
	return plain
}

func TestAllocations(t *testing.T) {
	s := fleetSite(t)
	for _, h := range hot {
		load := loadOf(t, h.cmd, h.fields)
		ask := func() {
			require.NoError(t, s.Answer(context.Background(), h.cmd, "web1", load, func([]byte) {}), h.name)
		}
		ask()
		if n := testing.AllocsPerRun(100, ask); n > h.ceiling {
			t.Errorf("%s: %.0f allocations, at most %.0f", h.name, n, h.ceiling)
		} else {
			t.Logf("%s: %.0f allocations", h.name, n)
		}
	}
}

// BenchmarkAnswer is without, BenchmarkSealed with the encryption for the minion.
func BenchmarkAnswer(b *testing.B) {
	s := fleetSite(b)
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			answers(b, s.Server, h.cmd, loadOf(b, h.cmd, h.fields), h.bytes, func([]byte) {})
		})
	}
}

func BenchmarkSealed(b *testing.B) {
	s := fleetSite(b)
	key, err := saltcrypt.NewKey()
	require.NoError(b, err)
	c, nonce := saltcrypt.NewCrypticle(key), []byte(strings.Repeat("0", 32))
	for _, h := range hot {
		b.Run(h.name, func(b *testing.B) {
			answers(b, s.Server, h.cmd, loadOf(b, h.cmd, h.fields), h.bytes, func(reply []byte) {
				n := saltcrypt.SealedLen(len(nonce) + len(reply))
				c.Seal(saltwire.AppendRawHeader(make([]byte, 0, n+5), n), reply, nonce)
			})
		})
	}
}

// BenchmarkChunkFromDisk is of a file that is larger than what is kept.
func BenchmarkChunkFromDisk(b *testing.B) {
	s := newSite(b, megabyte)
	s.put("big", strings.Repeat("0123456789abcdef", 64*megabyte/16))
	loads := make([][]byte, 64)
	for i := range loads {
		loads[i] = loadOf(b, "_serve_file", map[string]any{"path": "big", "loc": i * megabyte})
	}
	b.ReportAllocs()
	b.SetBytes(megabyte)
	for i := 0; b.Loop(); i++ {
		require.NoError(b, s.Answer(context.Background(), "_serve_file", "web1", loads[i%64], func([]byte) {}))
	}
}

func answers(b *testing.B, s *fileserve.Server, cmd string, load []byte, size int64, finish func([]byte)) {
	b.ReportAllocs()
	if size > 0 {
		b.SetBytes(size)
	}
	for b.Loop() {
		require.NoError(b, s.Answer(context.Background(), cmd, "web1", load, finish))
	}
}
