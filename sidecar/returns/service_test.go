package returns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/spool"
)

func TestTake_FiledAndFired(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	r := request(t, "web1")
	must(t, func(f func([]byte, error)) { s.Take(r, f) })
	must(t, func(f func([]byte, error)) { s.Take(r, f) }) // byte for byte: the same one
	patience.WaitFor(t, "the files", func() bool { return s.cache().Has(jid, "web1") })
	patience.WaitFor(t, "the event", func() bool { return pending(s, ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 1 || w.fired[0] != "salt/job/"+jid+"/ret/web1" {
			t.Errorf("fired %v", w.fired)
		}
	})
}

// The journal counts loads. What is much more than its load is not kept beside it, and comes to the same events and
// files.
func TestLargePlansAreMadeAgain(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	states := map[string]any{}
	for i := range 50 {
		states[fmt.Sprint("s", i)] = map[string]any{"result": false}
	}
	large := request(t, "web1", "fun", "state.sls", "retcode", strings.Repeat("x", 2000), "return", states)
	for _, c := range []struct {
		r    Request
		kept bool
	}{{request(t, "web2"), true}, {large, false}} {
		rec, plan, err := s.planReturn(c.r)
		if err != nil || (rec.Attachment != nil) != c.kept {
			t.Errorf("%s: a plan of %d bytes for a load of %d is kept: %v (%v)", c.r.Minion, plan.Size, len(c.r.Load),
				rec.Attachment != nil, err)
		}
	}
	must(t, func(f func([]byte, error)) { s.Take(large, f) })
	patience.WaitFor(t, "the events", func() bool { return pending(s, ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 101 || !s.cache().Has(jid, "web1") {
			t.Errorf("%d events", len(w.fired))
		}
	})
}

func TestScheduledReturnGetsAJob(t *testing.T) {
	w := newWorld(t)
	w.busDown = true
	s := w.open("a")
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1", "jid", "req"), f) })
	require.NoError(t, s.Close())
	w.set(func() { w.busDown = false })
	s = w.open("a") // what was not fired is planned again, with the same job id
	patience.WaitFor(t, "the event", func() bool { return pending(s, ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 1 || len(w.fired[0]) != len("salt/job/"+jid+"/ret/web1") ||
			!s.cache().Has(w.fired[0][9:29], "web1") {
			t.Errorf("fired %v", w.fired)
		}
	})
}

func TestTake_BusDown(t *testing.T) {
	w := newWorld(t)
	w.busDown = true
	s := w.open("a")
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) })
	patience.WaitFor(t, "the files", func() bool { return s.cache().Has(jid, "web1") })
	if n := s.Unfired(); n != 1 {
		t.Errorf("%d wait for the bus", n)
	}
	if s.Unstored() == 0 {
		t.Error("a node that is removed now takes the event with it")
	}
	w.set(func() {
		if len(w.fired) != 0 {
			t.Errorf("fired %v on a bus that is down", w.fired)
		}
		w.busDown = false
	})
	patience.WaitFor(t, "the event", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.fired) == 1 })
	patience.WaitFor(t, "nothing to wait", func() bool { return s.Unfired() == 0 && s.Unstored() == 0 })
}

// Events of a bus that stays down, or takes nothing, must not take the room of returns.
func TestTake_DiscardEventsWhenFull(t *testing.T) {
	for name, ill := range map[string]func(*world){
		"down": func(w *world) { w.busDown = true }, "hangs": func(w *world) { w.busHangs = true },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			ill(w)
			s := w.service("a", func(c *Config) { c.MaxBytes = 1 << 20 })
			s.fireWithin = time.Millisecond
			require.NoError(t, s.Open(t.Context()))
			defer s.Close()
			for i := range 60 { // 30 KiB each
				r := request(t, fmt.Sprint("web", i), "return", string(make([]byte, 30<<10)))
				patience.WaitFor(t, "room", func() bool {
					_, err := take(t, func(f func([]byte, error)) { s.Take(r, f) })
					if err != nil && !errors.Is(err, spool.ErrFull) {
						t.Fatal(err)
					}
					return err == nil
				})
			}
			patience.WaitFor(t, "the files", func() bool { return s.cache().Has(jid, "web59") })
		})
	}
}

func TestDefer_NeedsPython(t *testing.T) {
	w := newWorld(t)
	w.pyDown = true
	w.pyErr["gone"] = ErrGone
	s := w.open("a")
	odd := request(t, "web1", "jid", 5) // a number
	if _, err := take(t, func(f func([]byte, error)) { s.Take(odd, f) }); !errors.Is(err, ErrPython) {
		t.Fatalf("error %v", err)
	}
	for _, id := range []string{"web1", "gone", "web2"} {
		must(t, func(f func([]byte, error)) { s.Defer(request(t, id), f) })
	}
	w.set(func() { w.pyDown = false })
	patience.WaitFor(t, "the master", func() bool { return pending(s, pythonName) == 0 })
	w.set(func() {
		slices.Sort(w.pyGot)
		check.EqualSlices(t, w.pyGot, []string{"gone", "web1", "web2"}, "the master")
	})
}

// TestDefer_MasterDiskFull wants a return that was acknowledged to wait while the master could not store it: it answers
// all the same.
func TestDefer_MasterDiskFull(t *testing.T) {
	w := newWorld(t)
	full := error(syscall.EIO)
	var looked int
	s := w.open("a", func(c *Config) {
		c.Mode.Takes = func(int) (err error) {
			w.set(func() { err = full; looked++ })
			return err
		}
	})
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) })
	patience.WaitFor(t, "many tries", func() (many bool) { w.set(func() { many = looked > maxFailures }); return many })
	w.set(func() {
		if len(w.pyGot) > 0 {
			t.Errorf("the master got %v", w.pyGot)
		}
		full = nil
	})
	patience.WaitFor(t, "the master", func() bool { return pending(s, pythonName) == 0 })
	w.set(func() {
		if !slices.Equal(w.pyGot, []string{"web1"}) {
			t.Errorf("the master got %v", w.pyGot)
		}
	})
}

// What the master did not come to the end of is cleared away before it gets the return again.
func TestDefer_MendFirst(t *testing.T) {
	w := newWorld(t)
	var mended []string
	s := w.open("a", func(c *Config) {
		c.Mode.Mend = func(jid, minion string) {
			w.set(func() { mended = append(mended, fmt.Sprint(jid, minion, len(w.pyGot))) })
		}
	})
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) })
	patience.WaitFor(t, "the master", func() bool { return pending(s, pythonName) == 0 })
	w.set(func() {
		if want := []string{fmt.Sprint(jid, "web1", 0)}; !slices.Equal(mended, want) {
			t.Errorf("mended %v, want %v", mended, want)
		}
	})
}

func TestRefusedByPython(t *testing.T) {
	w := newWorld(t)
	w.pyErr["web1"] = ErrRefused
	s := w.open("a")
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) })
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web2"), f) })
	patience.WaitFor(t, "the end", func() bool { return pending(s, pythonName) == 0 })
	w.set(func() {
		times := map[string]int{}
		for _, id := range w.pyGot {
			times[id]++
		}
		if times["web1"] != maxRefusals || times["web2"] != 1 {
			t.Errorf("the master was asked %v", times)
		}
	})
	if list, _ := s.Unanswered(); len(list) != 1 || list[0].Minion != "web1" {
		t.Errorf("put aside: %+v", list)
	}
}

func TestWithoutNativeReturns(t *testing.T) {
	w := newWorld(t)
	s := w.open("a", func(c *Config) {
		c.Mode = Mode{Reasons: map[string]string{"_return": "job_cache is off", "_syndic_return": "job_cache is off"}}
	})
	if _, err := take(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) }); !errors.Is(err, ErrPython) {
		t.Errorf("error %v", err)
	}
	if ok, reason := s.Native("_return"); ok || reason != "job_cache is off" {
		t.Errorf("%v %q", ok, reason)
	}
}

func TestModeChanges(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	native := *s.mode.Load()
	s.Use(Mode{Reasons: map[string]string{"_return": "job_cache is off"}})
	if _, err := take(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) }); !errors.Is(err, ErrPython) {
		t.Errorf("error %v", err)
	}
	s.Use(native)
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) })
	patience.WaitFor(t, "the files", func() bool { return s.cache().Has(jid, "web1") })
}

// A master whose options have changed meanwhile gets what was journaled before.
func TestTake_NotNativeAfterRestart(t *testing.T) {
	w := newWorld(t)
	w.busDown = true
	s := w.open("a")
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) })
	require.NoError(t, s.Close())
	s = w.open("a", func(c *Config) { c.Mode = Mode{Reasons: map[string]string{"_return": "x", "_syndic_return": "x"}} })
	patience.WaitFor(t, "the events' end", func() bool { w.set(func() { w.busDown = false }); return pending(s, ownName) == 0 })
	if n := pending(s, pythonName); n > 1 {
		t.Errorf("%d for the master", n)
	}
}

func TestKeptForAnotherNode(t *testing.T) {
	w := newWorld(t)
	w.standing["b"] = Unreachable
	a := w.open("a")
	for i := range 10 {
		must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
	}
	require.NoError(t, a.Close())
	b := w.open("b")
	// The answer to the first batch is lost: it comes again and changes nothing.
	w.set(func() { w.sendErr, w.standing["b"] = errors.New("lost"), Reachable })
	a = w.open("a")
	patience.WaitFor(t, "a first try", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.sent > 0 })
	w.set(func() { w.sendErr = nil })
	patience.WaitFor(t, "the publisher", func() bool { return pending(a, "to.b") == 0 })
	patience.WaitFor(t, "its bus", func() bool { return pending(b, ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 10 {
			t.Errorf("fired %v", w.fired)
		}
	})
	if !b.cache().Has(jid, "web9") {
		t.Error("web9 is not in the publisher's job cache")
	}
}

// A minion of 3008 returns for itself and, under its own name, for each resource that it manages. What was kept of one
// is no second return of another.
func TestKeptReturnsOfResources(t *testing.T) {
	w := newWorld(t)
	as3008 := func(c *Config) { c.Mode.Cache = w.cache(t.TempDir(), "3008.3") }
	b := w.open("b", as3008)
	must(t, func(f func([]byte, error)) { b.Take(request(t, "web1"), f) })
	patience.WaitFor(t, "its own return", func() bool { return b.cache().Has(jid, "web1") })
	w.set(func() { w.standing["b"] = Unreachable })
	a := w.open("a", as3008)
	for _, id := range []string{"switch1", "switch2"} {
		must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web1", "resource_id", id, "nonce", id), f) })
	}
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web1", "nonce", "again"), f) })
	w.set(func() { w.standing["b"] = Reachable })
	patience.WaitFor(t, "the publisher", func() bool { return pending(a, "to.b") == 0 && pending(b, ownName) == 0 })
	for _, id := range []string{"switch1", "switch2"} {
		if !b.cache().Has(jid, id) {
			t.Errorf("the return of %s was acknowledged and is lost", id)
		}
	}
	w.set(func() {
		if slices.Sort(w.fired); len(w.fired) != 3 {
			t.Errorf("fired %v", w.fired)
		}
	})
}

func TestSuccessorTakesOver(t *testing.T) {
	for _, owner := range []node.ID{"a", "c"} {
		t.Run(string(owner), func(t *testing.T) {
			w := newWorld(t)
			w.standing["b"] = Unreachable
			a, c := w.open("a"), w.open("c")
			for i := range 3 {
				must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
			}
			w.set(func() { w.standing["b"] = Unknown })
			w.set(func() { w.standing["b"] = Removed }) // nobody is responsible yet
			w.set(func() { w.owner = owner })
			patience.WaitFor(t, "the successor", func() bool { return pending(a, "to.b") == 0 })
			next := map[node.ID]*Service{"a": a, "c": c}[owner]
			patience.WaitFor(t, "its job cache", func() bool { return next.cache().Has(jid, "web2") })
		})
	}
}

// TestNextKeeper: a node that leaves has another one keep what it kept.
func TestNextKeeper(t *testing.T) {
	w := newWorld(t)
	w.standing["b"] = Unreachable
	a, c := w.open("a"), w.open("c")
	for i := range 3 {
		must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
	}
	w.set(func() { w.nextKeeper = "c" })
	patience.WaitFor(t, "the heir", func() bool { return a.Kept() == 0 })
	check.Equal(t, c.Kept(), 3, "c keeps")
	b := w.open("b")
	w.set(func() { w.nextKeeper, w.standing["b"] = "", Reachable })
	patience.WaitFor(t, "the publisher", func() bool { return c.Kept() == 0 && b.cache().Has(jid, "web2") })
}

func TestClosedTakesNothing(t *testing.T) {
	w := newWorld(t)
	s := w.service("a")
	calls := map[string]func(func([]byte, error)){
		"Take":  func(f func([]byte, error)) { s.Take(request(t, "web1"), f) },
		"Keep":  func(f func([]byte, error)) { s.Keep("b", request(t, "web1"), f) },
		"Defer": func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) },
	}
	for name, f := range calls {
		if _, err := take(t, f); err == nil {
			t.Errorf("%s before Open acknowledges", name)
		}
	}
	require.NoError(t, s.Open(context.Background()))
	require.NoError(t, s.Close())
	for name, f := range calls {
		if _, err := take(t, f); err == nil {
			t.Errorf("%s after Close acknowledges", name)
		}
	}
}

// A journal that cannot be opened is tried again with the next return.
func TestJournalThatCannotBeOpened(t *testing.T) {
	w := newWorld(t)
	reg := prometheus.NewRegistry()
	s := w.open("a", func(c *Config) { c.Registerer = reg })
	place := s.path("to.b")
	require.NoError(t, os.WriteFile(place, nil, 0o600))
	keep := func(f func([]byte, error)) { s.Keep("b", request(t, "web1"), f) }
	for range 2 {
		if _, err := take(t, keep); err == nil {
			t.Fatal("acknowledged without a journal")
		}
	}
	require.NoError(t, os.Remove(place))
	must(t, keep)
	all, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range all {
		if f.GetName() == "saltcluster_journal_records_total" && len(f.GetMetric()) != 4 {
			t.Errorf("metrics of %d journals, not of 4", len(f.GetMetric()))
		}
	}
}

func TestHoldBack(t *testing.T) {
	w := newWorld(t)
	var seen time.Time
	s := w.open("a", func(c *Config) {
		c.HoldBack = 50 * time.Millisecond
		c.Published = func(string) (time.Time, bool) { return seen, true }
	})
	seen = time.Now()
	must(t, func(f func([]byte, error)) { s.Take(request(t, "web1"), f) })
	patience.WaitFor(t, "the event", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.fired) == 1 })
	if d := time.Since(seen); d < 50*time.Millisecond {
		t.Errorf("fired %v after the publication", d)
	}
}
