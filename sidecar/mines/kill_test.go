package mines_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/killtest"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

// TestKilledProcess writes mines and says how far it is, until it is killed.
func TestKilledProcess(t *testing.T) {
	dir := killtest.Child(t)
	conf := filepath.Join(dir, "master")
	c, err := localmaster.LoadConfig(conf, localmaster.Version{Major: 3008, Text: "test"})
	require.NoError(t, err)
	store, err := datacache.New(storeConfig(filepath.Join(dir, "state"), c.CacheDir, 3008))
	if err == nil {
		err = store.Open(context.Background())
	}
	require.NoError(t, err)
	s, err := mines.New(mines.Config{Store: store, Keys: everybody, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	set, reason := mines.Native(c, 3008)
	s.Use(set, reason)
	for i := 0; ; {
		b := saltwire.AppendMapHeader(nil, 3)
		b = saltwire.AppendRaw(saltwire.AppendRaw(b, "cmd"), "_mine")
		b = saltwire.AppendRaw(saltwire.AppendRaw(b, "id"), "m1")
		b = saltwire.AppendMapHeader(saltwire.AppendRaw(b, "data"), 2)
		b = saltwire.AppendInt(saltwire.AppendRaw(b, "n"), int64(i))
		b = saltwire.AppendRaw(saltwire.AppendRaw(b, "pad"), strings.Repeat(string(rune('a'+i%26)), 20_000))
		if err := s.Answer(context.Background(), "_mine", "m1", b, func([]byte) { fmt.Println(i) }); err == nil {
			i++
		} else {
			time.Sleep(time.Millisecond) // it has not looked at the disk yet
		}
	}
}

// storeConfig is that of a node without peers.
func storeConfig(state, dir string, major int) datacache.Config {
	return datacache.Config{
		Config: replicatest.NewNet().Config("a", state), Kind: datacache.Mine, Keys: everybody,
		Master: datacache.Master{Major: major, CacheDir: dir, UID: -1, GID: -1, DataCache: true, Driver: "localfs"},
		Clock: datacache.Clock{Now: func() uint64 { return uint64(time.Now().UnixMilli()) << 16 },
			Observe: func(uint64) error { return nil }},
	}
}

// Whenever the process is killed, the mine is one that was sent, whole, and not one from before the last that was
// answered.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	cache := filepath.Join(dir, "cache")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "master"), []byte("root_dir: "+dir+"\ncachedir: "+cache+"\n"),
		0o600))
	require.NoError(t, os.Mkdir(cache, 0o755))
	for round := range 6 {
		acked := -1
		killtest.Kill(t, "TestKilledProcess", dir, 2, 62, func(text string) bool {
			n, err := strconv.Atoi(text)
			require.NoError(t, err)
			acked = n
			return true
		})
		raw, err := os.ReadFile(filepath.Join(cache, mineFile(3008, "m1")))
		require.NoError(t, err)
		mine, ok := saltvalue.ParseFields(raw)
		rawN, _ := mine.Get("n")
		pad, _ := mine.Get("pad")
		n, _, err := msgp.ReadInt64Bytes(rawN)
		if text, _ := saltvalue.Text(pad); !ok || err != nil || text != strings.Repeat(string(rune('a'+n%26)), 20_000) ||
			int(n) < acked {
			t.Fatalf("round %d: %d was answered, the mine is %.60q, %v", round, acked, raw, err)
		}
	}
}
