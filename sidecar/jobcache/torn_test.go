package jobcache_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A power loss leaves names without content. What is applied again then is written again.
func TestWhatAPowerLossLeaves(t *testing.T) {
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
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, damage(want), 0o644); err != nil {
					t.Fatal(err)
				}
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
func TestEmptyFilesOfAJobAreMended(t *testing.T) {
	load := dict{"cmd", "_return", "id", "m1", "jid", testJID, "return", 1, "retcode", 0, "success", true, "fun", "test.ping"}
	c, dir := newCache(t, stockOptions())
	apply(t, c, load)
	job := jobDir(t, dir)
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{".load.p", ".minions.p"} {
		path := filepath.Join(job, name)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	again, err := newCacheIn(dir, stockOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	apply(t, again, dict{"cmd", "_return", "id", "m2", "jid", testJID, "return", 1, "retcode", 0, "success", true, "fun", "test.ping"})
	for _, name := range []string{".load.p", ".minions.p"} {
		if info, err := os.Stat(filepath.Join(job, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s is still empty: %v", name, err)
		}
	}
}
