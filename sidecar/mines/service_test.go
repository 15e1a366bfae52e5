package mines_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/saltvalue"
)

// shelf is a Store of one mine.
type shelf struct {
	mu   sync.Mutex
	mine []byte
	err  error
	wait bool // for the other nodes, in vain
}

func (s *shelf) Change(ctx context.Context, _ string, edit func(now []byte) ([]byte, bool, error),
	settle time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	for range 2 { // as when the master has written it between
		then, write, err := edit(s.mine)
		if err != nil {
			return err
		}
		if write {
			s.mine = then
		}
	}
	if s.wait {
		if _, limited := ctx.Deadline(); limited || settle <= 0 {
			return errors.New("the request itself was given no time")
		}
		ctx, cancel := context.WithTimeout(ctx, settle)
		defer cancel()
		<-ctx.Done()
	}
	return nil
}

func TestNative(t *testing.T) {
	site := t.TempDir()
	require.NoError(t, errors.Join(os.MkdirAll(site+"/cache", 0o755),
		os.WriteFile(site+"/cache/localfs.py", nil, 0o644)))
	for _, c := range []struct {
		name, config string
		major        int
		want         string // why only the master knows
		unread       string // why it alone answers _mine_get
	}{
		{name: "default", major: 3006},
		{name: "3009", major: 3009, want: "not a version"},
		{name: "redis", config: "cache: redis\n", want: "cache is"},
		{name: "no cache", config: "minion_data_cache: False\n", want: "minion_data_cache"},
		{name: "mines all the same", config: "minion_data_cache: False\nenforce_mine_cache: True\n"},
		{name: "memory", config: "memcache_expire_seconds: 30\n", want: "memcache_expire_seconds"},
		{name: "statistics", config: "master_stats: True\n", want: "master_stats"},
		{name: "tracing", major: 3008, config: "tracing: {enabled: True}\n", want: "tracing"},
		{name: "own module", config: "cache_dirs: [" + site + "/cache]\n", want: "own cache module"},
		{name: "own module dir", config: "module_dirs: [" + site + "]\n", want: "own cache module"},
		{name: "guarded", config: "mine_get: {'.*': ['test.*']}\n"},
		{name: "Python's expression for minions", config: "mine_get: {'(?!x)': ['.*']}\n", unread: "mine_get"},
		{name: "Python's expression for functions", config: "mine_get: {'.*': ['\\d']}\n", unread: "mine_get"},
		{name: "a number for minions", config: "mine_get: {1: ['.*']}\n", unread: "mine_get"},
		{name: "a fraction for minions", config: "mine_get: {1.5e-9: ['.*']}\n", unread: "mine_get"},
		{name: "a truth for minions", config: "mine_get: {yes: ['.*']}\n", unread: "mine_get"},
		{name: "nothing for minions", config: "mine_get: {~: ['.*']}\n", unread: "mine_get"},
		{name: "an anchor repeated", config: "mine_get: {'^*': ['.*']}\n", unread: "mine_get"},
		{name: "a number and more", config: "mine_get: {'1.*': ['.*']}\n"},
		{name: "no expression", config: "mine_get: {'.*': [[x]]}\n", unread: "mine_get"},
		{name: "roster", config: "enable_ssh_minions: True\n", unread: "enable_ssh_minions"},
		{name: "list of keys", config: "key_cache: sched\n", unread: "key_cache"},
		{name: "list of keys, 3008", major: 3008, config: "key_cache: sched\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.major == 0 {
				c.major = 3007
			}
			major := min(c.major, 3008)
			set, reason := mines.Native(options(t, c.config, major), c.major)
			if (set == nil) != (c.want != "") || !strings.Contains(reason, c.want) {
				t.Fatalf("%v, %q", set, reason)
			}
			s, err := mines.New(mines.Config{Store: &shelf{}, Keys: everybody})
			require.NoError(t, err)
			s.Use(set, reason)
			for _, cmd := range mines.Commands() {
				why := c.want
				if cmd == "_mine_get" && why == "" {
					why = c.unread
				}
				ok, reason := s.Native(cmd)
				if ok != (why == "") || ok != s.Takes(cmd) || !strings.Contains(reason, why) || ok != (reason == "") {
					t.Errorf("%s: %v, %q", cmd, ok, reason)
				}
			}
			if s.Takes("_pillar") {
				t.Error("it takes anything")
			}
		})
	}
}

func TestIncomplete(t *testing.T) {
	if _, err := mines.New(mines.Config{}); err == nil {
		t.Error("made of nothing")
	}
}

// What an error of the store means for the minion: the master is asked, and nothing was done.
func TestStoreRefuses(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	store := &shelf{}
	s, err := mines.New(mines.Config{Store: store, Keys: everybody, Settle: time.Millisecond, Registerer: reg})
	require.NoError(t, err)
	answer := func(cmd string, load []byte) ([]byte, error) {
		var reply []byte
		err := s.Answer(t.Context(), cmd, "m1", load, func(r []byte) { reply = r })
		return reply, err
	}
	flush := wire(t, load("_mine_flush", "m1"))
	var python *saltvalue.NeedsPython
	if _, err := answer("_mine_flush", flush); !errors.As(err, &python) {
		t.Errorf("without settings: %v", err)
	}
	set, reason := mines.Native(options(t, "", 3006), 3006)
	s.Use(set, reason)
	broken := errors.New("broken disk")
	for _, err := range []error{broken, mines.ErrNotHere} {
		store.err = err
		if _, got := answer("_mine_flush", flush); !errors.Is(got, err) {
			t.Errorf("%v: %v", err, got)
		}
	}
	store.err = nil
	for name, load := range map[string][]byte{
		"of another minion": wire(t, load("_mine_flush", "m2")), "without an id": wire(t, dict{"cmd", "_mine_flush"}),
		"id is bytes": wire(t, load("_mine_flush", "\xff")),
	} {
		if _, err := answer("_mine_flush", load); !errors.As(err, &python) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, load := range [][]byte{nil, {0xc1}, {0x81, 0xa1}, {0x90}, append(bytes.Clone(flush), 0)} {
		if _, err := answer("_mine_flush", load); !errors.Is(err, saltvalue.ErrMalformed) {
			t.Errorf("%x: %v", load, err)
		}
	}
	if _, err := answer("_pillar", flush); !errors.As(err, &python) {
		t.Errorf("another command: %v", err)
	}
	store.wait = true
	if reply, err := answer("_mine", wire(t, load("_mine", "m1", "data", dict{"f", 1}))); err != nil ||
		string(reply) != "\xc3" {
		t.Errorf("others who are slow: %x, %v", reply, err)
	}
	if string(store.mine) != "\x81\xa1f\x01" {
		t.Errorf("written %x", store.mine)
	}
	const want = `# HELP saltcluster_minion_mine_requests_total Requests of minions about mines by how they were handled without the salt-master's Python, or why that was not possible.
# TYPE saltcluster_minion_mine_requests_total counter
saltcluster_minion_mine_requests_total{command="_mine",outcome="answered"} 1
saltcluster_minion_mine_requests_total{command="_mine_flush",outcome="failed"} 1
saltcluster_minion_mine_requests_total{command="_mine_flush",outcome="malformed"} 5
saltcluster_minion_mine_requests_total{command="_mine_flush",outcome="needs_python"} 5
saltcluster_minion_mine_requests_total{command="_pillar",outcome="needs_python"} 1
`
	check.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(want)))
}

// With 3008 a glob may mean resources of minions: it is left to the master when any were ever registered.
func TestResources(t *testing.T) {
	const registry = "resources/resource_index.by_id.mmap"
	for _, c := range []struct {
		name   string
		major  int
		make   func(w *world)
		python bool
	}{
		{name: "none", major: 3008},
		{name: "an empty registry", major: 3008, make: func(w *world) {
			w.write(registry, nil)
			require.NoError(t, os.Truncate(filepath.Join(w.dir, registry), 1<<28))
		}},
		{name: "some", major: 3008, make: func(w *world) { w.write(registry, []byte("\x01x:y")) }, python: true},
		{name: "before there were any", major: 3007, make: func(w *world) { w.write(registry, []byte("\x01x:y")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, options(t, "", c.major))
			if c.make != nil {
				c.make(w)
			}
			_, err := w.ask(load("_mine_get", "m1", "fun", "f", "tgt", "*"))
			var python *saltvalue.NeedsPython
			if errors.As(err, &python) != c.python || !c.python && err != nil {
				t.Errorf("%v", err)
			}
			if _, err := w.ask(load("_mine_get", "m1", "fun", "f", "tgt", "m2")); err != nil {
				t.Errorf("a minion: %v", err)
			}
		})
	}
}

// What lies where a mine should be and is none is left to the master, and nobody waits for it.
func TestOddFiles(t *testing.T) {
	for _, major := range []int{3006, 3008} {
		w := newWorld(t, options(t, "", major))
		bank := map[int]string{3006: "minions/m2.p", 3008: "mine.p"}[major]
		for name, content := range map[string]string{"no map": "\x90", "nothing": "", "cut off": "\x82\xa1a\x01",
			"text": "\xa3abc", "more": "\x80\x80"} {
			w.write(mineFile(major, "m1"), []byte(content))
			for _, d := range []dict{
				load("_mine", "m1", "data", dict{"f", 1}), load("_mine_delete", "m1", "fun", "f"), load("_mine_flush", "m1"),
				load("_mine_get", "m2", "fun", "f", "tgt", "m1"),
			} {
				if reply, err := w.ask(d); err == nil {
					t.Errorf("%d, %s: %s is answered %x", major, name, d[1], reply)
				}
			}
			if got := w.mine(major, "m1"); string(got) != content {
				t.Errorf("%d, %s: became %q", major, name, got)
			}
		}
		w.write(bank, []byte("\x80"))
		if reply, err := w.ask(load("_mine_get", "m1", "fun", "f", "tgt", "m2")); err == nil {
			t.Errorf("%d: %x, though the bank is one file", major, reply)
		}
		if reply, err := w.ask(load("_mine", "m2", "data", dict{})); err == nil {
			t.Errorf("%d: %x, though the bank is one file", major, reply)
		}
	}
}

// A question that nobody waits for any more is not answered.
func TestGetEnds(t *testing.T) {
	w := newWorld(t, options(t, "", 3006))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := w.service.Answer(ctx, "_mine_get", "m1", wire(t, load("_mine_get", "m1", "fun", "f", "tgt", "*")),
		func([]byte) { t.Error("answered") })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
