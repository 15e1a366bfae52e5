package returns

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// openAhead is open, of a node that files what is kept for others at once.
func (w *world) openAhead(id node.ID) *Service {
	w.t.Helper()
	s := w.service(id, func(c *Config) { c.Ahead = true })
	s.aheadAfter, s.aheadAgain = 0, 20*time.Millisecond
	require.NoError(w.t, s.Open(w.t.Context()))
	w.t.Cleanup(func() { check.NoError(w.t, s.Close()) })
	w.set(func() { w.at[id] = s })
	return s
}

// lies says whether a return lies in a node's job cache, taken or not.
func (w *world) lies(id node.ID, minion string) bool {
	found, _ := filepath.Glob(filepath.Join(w.dir, string(id), "cache/jobs/*/*", minion, "return.p"))
	return len(found) == 1
}

// copied gives one node the returns of another, as the replication of jobs does.
func (w *world) copied(from, to node.ID) {
	w.t.Helper()
	require.NoError(w.t, os.RemoveAll(filepath.Join(w.dir, string(to), "cache/jobs")))
	require.NoError(w.t, os.CopyFS(filepath.Join(w.dir, string(to), "cache"),
		os.DirFS(filepath.Join(w.dir, string(from), "cache"))))
}

// What is kept for a node that is away is in the job caches of the others meanwhile. Its events are fired once, by who
// takes it at last: the publisher, or its successor, whether that has a copy, has kept it itself, or neither.
func TestFiledAheadAndFiredOnce(t *testing.T) {
	for name, c := range map[string]struct {
		owner  node.ID // empty: the publisher is back
		copied bool
	}{
		"back": {}, "back, has copies": {copied: true}, "the keeper": {owner: "a"}, "a successor": {owner: "c"},
		"a successor with copies": {owner: "c", copied: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.standing["b"] = Unreachable
			a := w.openAhead("a")
			for i := range 10 {
				must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
			}
			patience.WaitFor(t, "the copies", func() bool { return w.lies("a", "web9") })
			if a.Kept() != 10 {
				t.Errorf("%d are kept", a.Kept())
			}
			w.set(func() {
				if len(w.fired) > 0 {
					t.Errorf("fired %v", w.fired)
				}
			})
			next := node.ID("b")
			if c.owner != "" {
				next = c.owner
			}
			if c.copied {
				w.copied("a", next)
			}
			if next != "a" {
				w.openAhead(next)
			}
			w.set(func() {
				if w.standing["b"], w.owner = Reachable, c.owner; c.owner != "" {
					w.standing["b"] = Removed
				}
			})
			s := w.at[next]
			patience.WaitFor(t, "the successor", func() bool { return pending(a, "to.b") == 0 && pending(s, ownName) == 0 })
			w.set(func() {
				if len(w.fired) != 10 || !slices.Contains(w.fired, "salt/job/"+jid+"/ret/web9") {
					t.Errorf("fired %v", w.fired)
				}
			})
			for i := range 10 {
				if !s.cache().Has(jid, fmt.Sprint("web", i)) {
					t.Errorf("web%d was not taken", i)
				}
			}
		})
	}
}

// What the publisher has taken before it went away, without anybody hearing so, is taken once also where a copy comes
// back to it.
func TestAheadOfWhatWasTaken(t *testing.T) {
	w := newWorld(t)
	r := request(t, "web1")
	b := w.open("b")
	must(t, func(f func([]byte, error)) { b.Take(r, f) })
	patience.WaitFor(t, "the event", func() bool { return pending(b, ownName) == 0 && b.cache().Has(jid, "web1") })
	require.NoError(t, b.Close())
	w.standing["b"] = Unreachable
	a := w.openAhead("a")
	must(t, func(f func([]byte, error)) { a.Keep("b", r, f) })
	patience.WaitFor(t, "the copy", func() bool { return w.lies("a", "web1") && !a.cache().Has(jid, "web1") })
	w.openAhead("b")
	w.set(func() { w.standing["b"] = Reachable })
	patience.WaitFor(t, "the publisher", func() bool { return pending(a, "to.b") == 0 && pending(w.at["b"], ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 1 || len(w.stored) != 2 { // the second time, for the mark of the copy
			t.Errorf("fired %v, told of %v", w.fired, w.stored)
		}
	})
}

// What has been handed over is not filed here any more, nor is what only Python can file.
func TestNotAhead(t *testing.T) {
	w := newWorld(t)
	w.standing["b"] = Reachable
	b, a := w.openAhead("b"), w.service("a", func(c *Config) { c.Ahead = true })
	a.aheadAfter = time.Second
	require.NoError(t, a.Open(t.Context()))
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web1"), f) })
	patience.WaitFor(t, "the publisher", func() bool { return pending(a, "to.b") == 0 && b.cache().Has(jid, "web1") })
	w.set(func() { w.standing["b"] = Unreachable })
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web2", "jid", 5), f) })
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web3"), f) })
	patience.WaitFor(t, "the copies", func() bool { return w.lies("a", "web3") })
	if w.lies("a", "web1") || w.lies("a", "web2") {
		t.Error("more than web3 is there")
	}
	require.NoError(t, a.Close())
}

// A disk that takes nothing makes them wait; one job that cannot be written does not hold up the others.
func TestAheadOnABadDisk(t *testing.T) {
	w := newWorld(t)
	w.standing["b"] = Unreachable
	a := w.openAhead("a")
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web1"), f) })
	patience.WaitFor(t, "the copy", func() bool { return w.lies("a", "web1") })
	dirs, _ := filepath.Glob(filepath.Join(w.dir, "a/cache/jobs/*/*"))
	require.NoError(t, os.RemoveAll(dirs[0]))
	require.NoError(t, os.WriteFile(dirs[0], nil, 0o644)) // no directory
	other := "20261121040506000002"
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web2"), f) })
	must(t, func(f func([]byte, error)) { a.Keep("b", request(t, "web3", "jid", other), f) })
	patience.WaitFor(t, "the other job", func() bool { return w.lies("a", "web3") })
	if a.Kept() != 3 {
		t.Errorf("%d are kept", a.Kept())
	}
}

// Where the job has no copies, there is not to be a part of it: a node that has some files it.
func TestAheadOnAReplica(t *testing.T) {
	for _, owner := range []node.ID{"b", "c"} {
		t.Run(string(owner), func(t *testing.T) {
			w := newWorld(t)
			w.standing["b"], w.copiers = Unreachable, map[string][]node.ID{"": {"c"}}
			a := w.openAhead("a")
			other := "20261121040506000002"
			for i := range 10 {
				must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
				must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("db", i), "jid", other), f) })
			}
			w.openAhead("c") // until then nobody can be reached
			patience.WaitFor(t, "the copies", func() bool { return w.lies("c", "web9") && w.lies("c", "db9") })
			if w.lies("a", "web0") || a.Kept() != 20 || w.at["c"].Kept() != 0 {
				t.Errorf("a has a part of it, or %d and %d are kept", a.Kept(), w.at["c"].Kept())
			}
			w.set(func() {
				if len(w.fired) > 0 {
					t.Errorf("fired %v", w.fired)
				}
			})
			if owner == "b" {
				w.openAhead("b")
				w.set(func() { w.standing["b"] = Reachable })
			} else {
				w.set(func() { w.standing["b"], w.owner = Removed, "c" })
			}
			next := w.at[owner]
			patience.WaitFor(t, "the successor", func() bool { return pending(a, "to.b") == 0 && pending(next, ownName) == 0 })
			w.set(func() {
				if len(w.fired) != 20 {
					t.Errorf("fired %v", w.fired)
				}
			})
			if !next.cache().Has(jid, "web9") || !next.cache().Has(other, "db0") {
				t.Error("they are not taken")
			}
		})
	}
}

// Of a job's replicas the next one files what one cannot.
func TestAheadOnAnotherReplica(t *testing.T) {
	for _, full := range []node.ID{"a", "c"} {
		t.Run(string(full), func(t *testing.T) {
			w := newWorld(t)
			w.standing["b"], w.copiers = Unreachable, map[string][]node.ID{"": {full, "d"}}
			w.openAhead("d")
			a := w.openAhead("a")
			if full == "c" {
				w.openAhead("c")
			}
			if err := os.WriteFile(filepath.Join(w.dir, string(full), "cache/jobs"), nil, 0o644); err != nil { // no directory
				t.Fatal(err)
			}
			for i := range 10 {
				must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", i)), f) })
			}
			patience.WaitFor(t, "the copies", func() bool { return w.lies("d", "web0") && w.lies("d", "web9") })
			if a.Kept() != 10 {
				t.Errorf("%d are kept", a.Kept())
			}
		})
	}
}

// A job all of whose replicas are away holds up no other, unless there is too much of it, and is filed when one is
// back.
func TestAhead_ReplicasAway(t *testing.T) {
	w := newWorld(t)
	other := "20261121040506000002"
	w.standing["b"], w.copiers = Unreachable, map[string][]node.ID{"": {"c"}, other: {"a"}}
	a := w.openAhead("a")
	keep := func(from, to int) {
		for i := range to - from {
			must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("web", from+i)), f) })
		}
		must(t, func(f func([]byte, error)) { a.Keep("b", request(t, fmt.Sprint("db", to), "jid", other), f) })
	}
	keep(0, 500)
	patience.WaitFor(t, "the other job", func() bool { return w.lies("a", "db500") })
	keep(500, maxLater+10)
	w.openAhead("c")
	patience.WaitFor(t, "the copies", func() bool {
		found, err := filepath.Glob(filepath.Join(w.dir, "c/cache/jobs/*/*/web*/return.p"))
		return err == nil && len(found) == maxLater+10 && w.lies("a", fmt.Sprint("db", maxLater+10))
	})
}
