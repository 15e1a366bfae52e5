package jobcache_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/jobcache"
)

// A power loss leaves names without content. What is applied again then is written again.
func TestApply_AfterPowerLoss(t *testing.T) {
	load := dict{
		"cmd", "_return", "id", "m1", "jid", testJID, "return", "a result",
		"retcode", 0, "success", true, "fun", "test.ping", "out", "nested",
	}
	for name, damage := range map[string]func([]byte) []byte{
		"empty": func([]byte) []byte { return nil },
		"zeros": func(b []byte) []byte { return make([]byte, len(b)) },
		"short": func(b []byte) []byte { return b[:len(b)-1] },
	} {
		for _, file := range []string{"m1/return.p", "m1/out.p"} {
			t.Run(name+" "+file, func(t *testing.T) {
				c, dir := newCache(t, stockOptions())
				apply(t, c, load)
				path := filepath.Join(jobDir(t, dir), file)
				want, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, damage(want), 0o644))
				if file == "m1/return.p" && c.Has(testJID, "m1") {
					t.Error("the damaged return is taken for one")
				}
				apply(t, c, load)
				got, err := os.ReadFile(path)
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%q, %v", got, err)
				}
				if !c.Has(testJID, "m1") {
					t.Error("the return is not there")
				}
			})
		}
	}
}

// Files of a job that a stock master wrote and a power loss emptied would make it raise for ever.
func TestApply_EmptyJobFiles(t *testing.T) {
	load := dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", 1, "retcode", 0, "success", true, "fun",
		"test.ping"}
	c, dir := newCache(t, stockOptions())
	apply(t, c, load)
	job := jobDir(t, dir)
	// by a clock that was set back since
	for name, age := range map[string]time.Duration{".load.p": time.Hour, ".minions.p": -time.Hour} {
		path := filepath.Join(job, name)
		require.NoError(t, os.WriteFile(path, nil, 0o644))
		at := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, at, at))
	}
	again, err := newCacheIn(dir, stockOptions())
	require.NoError(t, err)
	defer again.Close()
	apply(t, again, dict{"cmd", "_return", "id", "m2", "jid", testJID, "return", 1, "retcode", 0, "success", true, "fun",
		"test.ping"})
	for _, name := range []string{".load.p", ".minions.p"} {
		if info, err := os.Stat(filepath.Join(job, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is still empty: %v", name, err)
		}
	}
}

// Of a large file not every byte is read.
func TestHas_DamagedLargeReturn(t *testing.T) {
	for name, large := range map[string]any{
		"a text":     strings.Repeat("line\n", 40_000),
		"a state":    bigState(),
		"no retcode": nil,
	} {
		load := dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", large, "retcode", 0, "success", true, "fun",
			"cmd.run"}
		if large == nil {
			load = dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", strings.Repeat("x", 40_000), "fun", "cmd.run"}
		}
		for kind, damage := range map[string]func(t *testing.T, path string, content []byte){
			"cut off": func(t *testing.T, path string, content []byte) { require.NoError(t, os.Truncate(path, 8192)) },
			"empty":   func(t *testing.T, path string, content []byte) { require.NoError(t, os.Truncate(path, 0)) },
			"zeros": func(t *testing.T, path string, content []byte) {
				require.NoError(t, os.WriteFile(path, make([]byte, len(content)), 0o644))
			},
			"a block that was never written": func(t *testing.T, path string, content []byte) {
				f, err := os.Create(path)
				require.NoError(t, err)
				defer f.Close()
				_, err = f.Write(content[:4096])
				require.NoError(t, err)
				_, err = f.WriteAt(content[16384:], 16384)
				require.NoError(t, err)
			},
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				c, dir := newCache(t, stockOptions())
				apply(t, c, load)
				path := filepath.Join(jobDir(t, dir), "m1/return.p")
				content, err := os.ReadFile(path)
				require.NoError(t, err)
				if !c.Has(testJID, "m1") {
					t.Error("the return is not there")
				}
				damage(t, path, content)
				if c.Has(testJID, "m1") && !(kind == "a block that was never written" && noHoles(t, path)) {
					t.Error("the damaged return is taken for one")
				}
			})
		}
	}
}

func bigState() dict {
	var d dict
	for i := range 500 {
		d = append(d, fmt.Sprint("file_|-", i), dict{"result", true, "comment", "File is in the correct state", "duration",
			1.5})
	}
	return d
}

// noHoles says whether the file system keeps a file without a hole that has one.
func noHoles(t *testing.T, path string) bool {
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	require.NoError(t, err)
	hole, err := unix.Seek(int(f.Fd()), 0, unix.SEEK_HOLE)
	return err == nil && hole == size
}

func BenchmarkHas(b *testing.B) {
	for name, ret := range map[string]any{"ping": true, "text of 1 MiB": strings.Repeat("x", 1<<20)} {
		b.Run(name, func(b *testing.B) {
			c, _ := newCache(b, stockOptions())
			apply(b, c, dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", ret, "retcode", 0, "success", true, "fun",
				"cmd.run"})
			b.ReportAllocs()
			for b.Loop() {
				if !c.Has(testJID, "m1") {
					b.Fatal("not there")
				}
			}
		})
	}
}

// What a killed master leaves of a return must not make it drop the next try of the minion. Everything else stays.
func TestMend(t *testing.T) {
	load := dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", 1, "retcode", 0, "success", true, "fun",
		"test.ping", "out", "txt"}
	for _, c := range []struct {
		name, files string
		age         time.Duration
		want        bool
	}{
		{"no file", "", time.Minute, true},
		{"a file that was being written", ".___atomic_write1x2", time.Minute, true},
		{"an empty return", "return.p", time.Minute, true},
		{"no return yet", "out.p .___atomic_writeabc", time.Minute, true},
		{"dated by a clock that was set back since", "", -time.Hour, true},
		{"just made", "", 0, false},
		{"somebody else's", "notes", time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, dir := newCache(t, stockOptions())
			apply(t, cache, load)
			job := jobDir(t, dir)
			if !jobcache.Stored(dir, "sha256", testJID, "m1") || jobcache.Stored(dir, "sha256", testJID, "m2") {
				t.Error("it is not told which returns are stored")
			}
			if removed, err := jobcache.Mend(dir, "sha256", testJID, "m1"); removed || err != nil {
				t.Errorf("a whole return was removed: %v", err)
			}
			half := filepath.Join(job, "m2")
			require.NoError(t, os.Mkdir(half, 0o755))
			for _, name := range strings.Fields(c.files) {
				require.NoError(t, os.WriteFile(filepath.Join(half, name), nil, 0o644))
			}
			at := time.Now().Add(-c.age)
			require.NoError(t, os.Chtimes(half, at, at))
			if jobcache.Stored(dir, "sha256", testJID, "m2") {
				t.Error("half a return is taken for one")
			}
			removed, err := jobcache.Mend(dir, "sha256", testJID, "m2")
			if _, gone := os.Stat(half); removed != c.want || os.IsNotExist(gone) != c.want || err != nil {
				t.Errorf("removed: %v, %v (%v)", removed, gone, err)
			}
		})
	}
	for _, id := range []string{"", "..", "a/b", "jid", ".load.p", "nobody"} {
		if removed, err := jobcache.Mend(t.TempDir(), "sha256", testJID, id); removed || err != nil ||
			jobcache.Stored(t.TempDir(), "sha256", testJID, id) {
			t.Errorf("%q: %v, %v", id, removed, err)
		}
	}
}
