package jobcache_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/jobcache"
)

// A load names once what a master puts into each of its events and files: retcode and user into every failed state, out
// and fun_args of a syndic into every return. What they make of a load must not be many times the load, or one minion
// fills the memory of all.
func TestLoadsThatGrow(t *testing.T) {
	large := strings.Repeat("x", 1<<20)
	states := func(n int, result any) (all dict) {
		for i := range n {
			all = append(all, fmt.Sprint("s", i), dict{"result", result})
		}
		return all
	}
	failed := func(more ...any) dict {
		return ret(testJID, "m1", append([]any{"fun", "state.sls", "retcode", 2}, more...)...)
	}
	var returns dict
	for i := range 2000 {
		returns = append(returns, fmt.Sprint("low", i), dict{"return", true})
	}
	syndic := func(name string) dict {
		one := dict{"id", "syndic1", "jid", testJID, "fun", "test.ping", "return", returns, name, large}
		return dict{"cmd", "_syndic_return", "load", list{one}, "id", "syndic1", "nonce", "n", "tok", "t"}
	}
	for _, c := range []struct {
		name   string
		load   dict
		python bool
	}{
		{"a large retcode", failed("retcode", large, "return", states(2000, true)), true},
		{"a large retcode of failed states", failed("retcode", large, "return", states(2000, false)), true},
		{"a large user", failed("user", large, "return", states(2000, false)), true},
		{"very many failed states", failed("return", states(200_000, false)), true},
		{"a syndic's large out", syndic("out"), true},
		{"a syndic's large arguments", syndic("fun_args"), true},
		{"many failed states", failed("return", states(1000, false)), false},
		{"a long glob", ret(testJID, "m1", "tgt", strings.Repeat("[!a]", 1<<18)), true},
		{"a large return", ret(testJID, "m1", "return", strings.Repeat(large, 16), "out", "txt"), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := stockOptions()
			o["max_event_size"] = int64(64 << 20) // nothing is trimmed
			k, _ := newCache(t, o)
			load := wire(t, c.load)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := k.Plan(load, jobcache.Facts{Received: time.Unix(1790000000, 0)})
			runtime.ReadMemStats(&after)
			var needs *jobcache.NeedsPython
			if is := errors.As(err, &needs); is != c.python || err != nil && !is {
				t.Errorf("%v, only Python: %v", err, c.python)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > uint64(64*len(load)+64<<20) {
				t.Errorf("a load of %d KiB takes %d MiB", len(load)>>10, took>>20)
			}
		})
	}
}

// A reason is logged, where it has no use for all that a minion has put in the place of a word.
func TestReasonsAreShort(t *testing.T) {
	k, _ := newCache(t, stockOptions())
	for name, load := range map[string]dict{
		"a target's type":    ret(testJID, "m1", "tgt", "m1", "tgt_type", strings.Repeat("\n", 1<<20)),
		"a resource's id":    ret(testJID, "m1", "resource_id", "."+strings.Repeat("\n", 1<<20)),
		"the minion's own":   ret(testJID, "."+strings.Repeat("x", 1<<20)),
		"what a job was for": ret(testJID, "m1", "tgt", strings.Repeat("*", 1<<20)),
	} {
		_, err := k.Plan(wire(t, load), jobcache.Facts{Received: time.Unix(1790000000, 0)})
		if err == nil || len(err.Error()) > 1<<10 {
			t.Errorf("%s: a reason of %d bytes: %.100v", name, len(fmt.Sprint(err)), err)
		}
	}
}

// What is beyond what a master reads at once would be offered to it for ever.
func TestLargeEvents(t *testing.T) {
	o := stockOptions()
	o["max_event_size"] = int64(1 << 40) // nothing is trimmed
	k, _ := newCache(t, o)
	for size, python := range map[int]bool{maxEvent - 1<<10: false, maxEvent: true} {
		load := wire(t, dict{"cmd", "_minion_event", "id", "m1", "tag", "large", "data", strings.Repeat("x", size)})
		_, err := k.Plan(load, jobcache.Facts{Received: time.Unix(1790000000, 0)})
		var needs *jobcache.NeedsPython
		if is := errors.As(err, &needs); is != python || err != nil && !is {
			t.Errorf("%d bytes: %v, only Python: %v", size, err, python)
		}
	}
}

const maxEvent = 64 << 20
