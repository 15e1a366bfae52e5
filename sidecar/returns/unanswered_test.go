package returns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/killtest"
	"saltclusterd/sidecar/spool"
)

// keepOn defers returns of so many minions and waits until the master has answered all but the ones named.
func keepOn(t *testing.T, w *world, s *Service, minions ...string) {
	t.Helper()
	for _, id := range minions {
		must(t, func(f func([]byte, error)) { s.Defer(request(t, id), f) })
	}
	patience.WaitFor(t, "the journal's end", func() bool { return pending(s, pythonName) == 0 })
}

func asideOf(s *Service) (minions []string) {
	list, _ := s.Unanswered()
	for _, one := range list {
		minions = append(minions, one.Minion)
	}
	return minions
}

// TestUnansweredHoldsUpNoOther: one that the master does not answer though it answers others is put aside at once,
// stays so over a restart, and is given to the master again when that was started, or somebody says so.
func TestUnansweredHoldsUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute"] = context.DeadlineExceeded
	s := w.service("a")
	require.NoError(t, s.Open(t.Context()))
	var minions []string
	for i := range 300 { // more than one batch
		minions = append(minions, fmt.Sprint("web", i))
	}
	keepOn(t, w, s, append([]string{"mute"}, minions...)...)
	w.set(func() {
		times := map[string]int{}
		for _, id := range w.pyGot {
			times[id]++
		}
		for _, id := range append(minions, "mute") {
			if times[id] != 1 {
				t.Errorf("the master got %s's %d times", id, times[id])
			}
		}
	})
	list, full := s.Unanswered()
	if len(list) != 1 || full || list[0].Minion != "mute" || list[0].JID != jid || list[0].Fun != "test.ping" ||
		list[0].Tries != 1 || list[0].Err == "" {
		t.Fatalf("put aside: %+v, full %v", list, full)
	}
	if n, aside := s.Deferred(), s.Aside(); n != 0 || aside != 1 {
		t.Errorf("%d wait for the master, %d are aside", n, aside)
	}
	file := filepath.Join(w.dir, "a", "returns", unansweredName, list[0].ID+unansweredExt)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	require.NoError(t, s.Close())
	s = w.open("a")
	again, _ := s.Unanswered()
	if len(again) != 1 || again[0].ID != list[0].ID || !again[0].Received.Equal(list[0].Received) ||
		again[0].Since.Sub(list[0].Since).Abs() > time.Second {
		t.Fatalf("after a restart: %+v, before %+v", again, list)
	}
	s.MasterStarted() // it had it moments ago
	if now, _ := s.Unanswered(); now[0].Next.Before(time.Now()) {
		t.Errorf("due at once: %+v", now)
	}
	w.set(func() { delete(w.pyErr, "mute"); w.pyGot = nil })
	if n, _ := s.Again(); n != 1 {
		t.Errorf("%d are given again", n)
	}
	patience.WaitFor(t, "the answer", func() bool { return len(asideOf(s)) == 0 })
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("its file: %v", err)
	}
	w.set(func() {
		if strings.Join(w.pyGot, " ") != "mute" {
			t.Errorf("the master got %v", w.pyGot)
		}
	})
}

// TestUnansweredAgain: the pauses grow up to a limit, and when the master was started the oldest says whether the
// others are due.
func TestUnansweredAgain(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute"], w.pyErr["other"] = context.DeadlineExceeded, context.DeadlineExceeded
	s := w.service("a")
	for tries, want := range map[int]time.Duration{
		1: giveAgain, 2: 4 * giveAgain, 3: 16 * giveAgain, 4: 64 * giveAgain, 5: giveAgainMost, 99: giveAgainMost,
	} {
		check.Equal(t, s.unanswered.pauseAfter(tries), want, "after", tries, "tries")
	}
	require.NoError(t, s.Open(t.Context()))
	defer s.Close()
	keepOn(t, w, s, "mute")
	keepOn(t, w, s, "other")
	longAgo := func() {
		s.unanswered.mu.Lock()
		defer s.unanswered.mu.Unlock()
		for _, one := range s.unanswered.items {
			one.last, one.Next = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		}
		s.unanswered.notBefore = time.Time{}
	}
	longAgo()
	w.set(func() { w.pyDown = true })
	s.MasterStarted()
	w.set(func() { w.pyDown = false })
	s.MasterStarted()
	patience.WaitFor(t, "another try", func() bool { list, _ := s.Unanswered(); return list[0].Tries == 2 })
	s.MasterStarted() // all pause
	list, _ := s.Unanswered()
	if len(list) != 2 || list[0].Minion != "mute" || time.Until(list[0].Next) < giveAgain/2 ||
		time.Until(list[1].Next) < time.Hour/2 {
		t.Errorf("%+v", list)
	}
	check.Equal(t, w.times("mute")+w.times("other"), 3, "the master")
	longAgo()
	w.set(func() { clear(w.pyErr) })
	s.MasterStarted()
	patience.WaitFor(t, "the answers", func() bool { return len(asideOf(s)) == 0 })
}

// TestGoneIsLeftOut: one whose minion is gone is done with.
func TestGoneIsLeftOut(t *testing.T) {
	w := newWorld(t)
	w.pyErr["web1"] = context.DeadlineExceeded
	s := w.open("a")
	keepOn(t, w, s, "web1")
	w.set(func() { w.pyErr["web1"] = ErrGone })
	s.Again()
	patience.WaitFor(t, "its end", func() bool { return len(asideOf(s)) == 0 })
}

// TestUnansweredPauses: after one that was not answered the master gets none of the others for a while, which grows
// until it answers one.
func TestUnansweredPauses(t *testing.T) {
	w := newWorld(t)
	s := w.service("a")
	u := s.unanswered
	u.first, u.top = time.Hour, 100*time.Hour
	require.NoError(t, s.Open(t.Context()))
	defer s.Close()
	minions := []string{"mute1", "mute2", "mute3", "mute4"}
	for _, id := range minions {
		w.set(func() { w.pyErr[id] = context.DeadlineExceeded })
	}
	keepOn(t, w, s, minions...)
	asleep := func() (d time.Duration) {
		u.mu.Lock()
		defer u.mu.Unlock()
		return time.Until(u.notBefore)
	}
	for i := range 2 { // all are due; an operator ends the pause
		w.set(func() { w.pyGot = nil })
		s.Again()
		patience.WaitFor(t, "the pause", func() bool { return asleep() > time.Hour/2 })
		w.set(func() {
			if len(w.pyGot) != 1 {
				t.Errorf("try %d: the master got %v", i, w.pyGot)
			}
		})
	}
	for _, want := range []time.Duration{4 * time.Hour, 16 * time.Hour} {
		u.noteFailed("none", context.DeadlineExceeded, inVain)
		if d := asleep(); d > want || d < want-time.Hour/2 {
			t.Errorf("%v instead of %v", d, want)
		}
	}
	u.noteAnswered()
	if asleep() > 0 {
		t.Error("it sleeps on")
	}
}

// times is how often the master got a minion's.
func (w *world) times(minion string) (n int) {
	w.set(func() {
		for _, id := range w.pyGot {
			if id == minion {
				n++
			}
		}
	})
	return n
}

// TestUnansweredWaitsForAnOperator: each try may fire the events of a return, so the master gets it maxAsked times,
// over restarts of both; then once whenever an operator says so. Refusals are no such tries.
func TestUnansweredWaitsForAnOperator(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute"], w.pyErr["refused"] = context.DeadlineExceeded, ErrRefused
	s := w.service("a")
	s.unanswered.first, s.unanswered.top = time.Millisecond, time.Millisecond
	require.NoError(t, s.Open(t.Context()))
	keepOn(t, w, s, "mute", "refused")
	held := func(s *Service) (mute Unanswered, is bool) {
		list, _ := s.Unanswered()
		for _, one := range list {
			if one.Minion == "mute" {
				mute = one
			}
		}
		return mute, mute.Next.IsZero()
	}
	patience.WaitFor(t, "the last try", func() bool { _, is := held(s); return is })
	before := w.times("refused")
	patience.WaitFor(t, "more tries of the other", func() bool { return w.times("refused") > before+maxAsked })
	mute, _ := held(s)
	if n := w.times("mute"); n != maxAsked || mute.Tries != maxAsked {
		t.Errorf("the master got it %d times: %+v", n, mute)
	}
	file := filepath.Join(w.dir, "a", "returns", unansweredName, mute.ID+heldExt)
	patience.WaitFor(t, "the note", func() bool { _, err := os.Stat(file); return err == nil })
	require.NoError(t, s.Close())
	s = w.open("a")
	s.MasterStarted()
	if mute, is := held(s); !is || mute.Tries != maxAsked {
		t.Errorf("after a restart: %+v", mute)
	}
	if n, _ := s.Again(); n != 2 {
		t.Errorf("%d are given again", n)
	}
	patience.WaitFor(t, "the operator's try", func() bool { _, is := held(s); return is && w.times("mute") == maxAsked+1 })
	w.set(func() { clear(w.pyErr) })
	s.Again()
	patience.WaitFor(t, "the answers", func() bool { return len(asideOf(s)) == 0 })
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the note: %v", err)
	}
}

// TestStoredIsDone: one that is in the job cache is not given to the master again, whose answer alone was missing.
func TestStoredIsDone(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute"], w.pyErr["other"] = context.DeadlineExceeded, context.DeadlineExceeded
	s := w.open("a", func(c *Config) {
		c.Mode.Stored = func(id, minion string) bool { return id == jid && minion == "mute" }
	})
	keepOn(t, w, s, "mute", "other")
	w.set(func() { w.pyErr["other"] = ErrRefused }) // after which there is no pause
	s.Again()
	patience.WaitFor(t, "the other's try", func() bool { return w.times("other") == 2 && len(asideOf(s)) == 1 })
	if n := w.times("mute"); n != 1 {
		t.Errorf("the master got it %d times", n)
	}
	syndic := spool.Record{Minion: "mute", JID: jid, Load: request(t, "mute", "cmd", "_syndic_return").Load}
	if s.hasStored(&syndic) {
		t.Error("what a syndic sends is taken for the return of one minion")
	}
}

// TestUnanswered_NotAsked: a return that did not reach the master, or cannot be read from disk now, counts as no try
// and makes the pause no longer.
func TestUnanswered_NotAsked(t *testing.T) {
	w := newWorld(t)
	w.pyErr["web1"] = context.DeadlineExceeded
	s := w.service("a")
	s.unanswered.first = time.Millisecond
	w.set(func() {
		w.pyDoes = func(minion string) { w.pyErr[minion] = fmt.Errorf("%w: %w", ErrNotAsked, context.DeadlineExceeded) }
	})
	require.NoError(t, s.Open(t.Context()))
	defer s.Close()
	rec := spool.Record{Minion: "web1", JID: jid, Received: time.Now(), Load: request(t, "web1").Load}
	require.NoError(t, s.unanswered.putReturn(rec, ErrRefused, 0))
	patience.WaitFor(t, "tries", func() bool { return w.times("web1") > 3*maxAsked })
	list, _ := s.Unanswered()
	if len(list) != 1 || list[0].Tries != 1 || list[0].Next.IsZero() || time.Until(list[0].Next) > time.Second {
		t.Fatalf("%+v", list)
	}
	path := s.unanswered.path(list[0].ID)
	err := errors.Join(os.Link(path, path+".away"), os.Symlink(filepath.Base(path), path+".loop"),
		os.Rename(path+".loop", path))
	require.NoError(t, err)
	patience.WaitFor(t, "an error", func() bool {
		now, _ := s.Unanswered()
		return len(now) == 1 && strings.Contains(now[0].Err, "symbolic links")
	})
	w.set(func() { clear(w.pyErr); w.pyDoes = nil })
	require.NoError(t, os.Rename(path+".away", path))
	patience.WaitFor(t, "the answer", func() bool { return len(asideOf(s)) == 0 })
}

// TestMasterAwayPutsNothingAside: what the master has not got, and what it cannot answer because it is down, is
// nobody's fault.
func TestMasterAwayPutsNothingAside(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	tried := 0
	w.set(func() {
		w.pyErr["web1"] = fmt.Errorf("%w: %w", ErrNotAsked, context.DeadlineExceeded)
		w.pyDoes = func(string) {
			if tried++; tried > 3*maxFailures {
				delete(w.pyErr, "web1")
			}
		}
	})
	keepOn(t, w, s, "web1")
	if list := asideOf(s); len(list) != 0 {
		t.Errorf("put aside: %v", list)
	}
	w.set(func() {
		w.pyErr["web2"], tried = context.DeadlineExceeded, 0
		w.pyDoes = func(string) { // it ends with the first, and is there again
			w.pyDown, w.pyBack = true, true
			if tried++; tried == maxFailures-1 {
				delete(w.pyErr, "web2")
			}
		}
	})
	keepOn(t, w, s, "web2")
	if list := asideOf(s); len(list) != 0 {
		t.Errorf("put aside: %v", list)
	}
}

// TestPoison: one that ends the master each time is put aside after some times, and the others get through.
func TestPoison(t *testing.T) {
	w := newWorld(t)
	w.pyErr["poison"] = errors.New("connection lost")
	w.pyDoes = func(minion string) {
		if minion == "poison" {
			w.pyDown = true
			time.AfterFunc(time.Millisecond, func() { w.set(func() { w.pyDown = false }) })
		}
	}
	s := w.open("a")
	keepOn(t, w, s, "web1", "poison", "web2", "web3")
	if got := asideOf(s); len(got) != 1 || got[0] != "poison" {
		t.Errorf("put aside: %v", got)
	}
	w.set(func() {
		n := 0
		for _, id := range w.pyGot {
			if id == "poison" {
				n++
			}
		}
		if n != maxFailures {
			t.Errorf("the master got it %d times", n)
		}
	})
}

// TestUnansweredIsBounded: what finds no room stays in the journal, is not given to the master meanwhile, and goes on
// when there is room.
func TestUnansweredIsBounded(t *testing.T) {
	w := newWorld(t)
	w.pyErr["mute1"], w.pyErr["mute2"] = context.DeadlineExceeded, context.DeadlineExceeded
	s := w.service("a")
	s.unanswered.maxBytes = 300
	require.NoError(t, s.Open(t.Context()))
	defer s.Close()
	for _, id := range []string{"mute1", "mute2"} {
		must(t, func(f func([]byte, error)) { s.Defer(request(t, id), f) })
	}
	patience.WaitFor(t, "no room", func() bool { _, full := s.Unanswered(); return full })
	list, _ := s.Unanswered()
	if len(list) != 1 || pending(s, pythonName) == 0 {
		t.Fatalf("%+v, %d in the journal", list, pending(s, pythonName))
	}
	if _, err := s.Drop("../../own/lock"); !errors.Is(err, ErrNotAside) {
		t.Errorf("error %v", err)
	}
	if one, err := s.Drop(list[0].ID); err != nil || one.ID != list[0].ID {
		t.Fatalf("%+v, %v", one, err)
	}
	patience.WaitFor(t, "the other", func() bool {
		now, full := s.Unanswered()
		return len(now) == 1 && now[0].ID != list[0].ID && !full && pending(s, pythonName) == 0
	})
	w.set(func() {
		if len(w.pyGot) != 2 {
			t.Errorf("the master got %v", w.pyGot)
		}
	})
}

// TestUnansweredOnce: what a kill leaves in the journal, though it is put aside already, is put aside once.
func TestUnansweredOnce(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	rec := spool.Record{Minion: "web1", JID: jid, Received: time.Now(), Load: request(t, "web1").Load}
	for range 2 {
		require.NoError(t, s.unanswered.putReturn(rec, context.DeadlineExceeded, 1))
	}
	if got := asideOf(s); len(got) != 1 {
		t.Errorf("%v", got)
	}
}

// TestUnanswered_DiskHangs: listing the unanswered returns does not hang with the disk, and shows only what is on disk.
func TestUnanswered_DiskHangs(t *testing.T) {
	w := newWorld(t)
	s := w.service("a")
	hangs, goOn, broken := make(chan struct{}), make(chan struct{}), errors.New("broken disk")
	write := s.unanswered.writeFile
	s.unanswered.writeFile = func(string, []byte) error {
		hangs <- struct{}{}
		<-goOn
		return broken
	}
	require.NoError(t, s.Open(t.Context()))
	defer s.Close()
	rec := spool.Record{Minion: "web1", JID: jid, Received: time.Now(), Load: request(t, "web1").Load}
	done := make(chan error, 1)
	go func() { done <- s.unanswered.putReturn(rec, context.DeadlineExceeded, 1) }()
	<-hangs
	if got := asideOf(s); len(got) != 0 {
		t.Errorf("aside: %v", got)
	}
	check.ErrorIs(t, s.unanswered.putReturn(rec, context.DeadlineExceeded, 1), errBusy, "the same once more")
	close(goOn)
	check.ErrorIs(t, <-done, broken, "error")
	s.unanswered.writeFile = write
	s.unanswered.mu.Lock()
	if n := s.unanswered.bytes; n != 0 || len(s.unanswered.busy) != 0 {
		t.Errorf("%d bytes and %d places are taken for nothing", n, len(s.unanswered.busy))
	}
	s.unanswered.mu.Unlock()
	if err := s.unanswered.putReturn(rec, context.DeadlineExceeded, 1); err != nil || len(asideOf(s)) != 1 {
		t.Errorf("%v, aside: %v", err, asideOf(s))
	}
}

// TestDamagedUnanswered: a file that is no return stays for somebody to look at, and can be dropped.
func TestDamagedUnanswered(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.dir, "a", "returns", unansweredName)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, text := range map[string]string{"aa" + unansweredExt: "nonsense", "bb" + unansweredExt: batchMagic,
		"cc" + heldExt: "", "notes": "x", ".saltcluster-12": "x"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s := w.open("a")
	if due, damaged := s.Again(); due != 0 || damaged != 2 {
		t.Errorf("%d due, %d damaged", due, damaged)
	}
	list, _ := s.Unanswered()
	if len(list) != 2 || list[0].Err == "" || !list[0].Next.IsZero() || !list[1].Next.IsZero() {
		t.Fatalf("%+v", list)
	}
	for _, one := range list {
		if _, err := s.Drop(one.ID); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "notes" {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestUnansweredOfANewerVersion: a return that a newer version has put aside is not called damaged, and stays.
func TestUnansweredOfANewerVersion(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.dir, "a", "returns", unansweredName)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	batch, _, err := appendBatch(nil, []spool.Record{{Minion: "m1", JID: "1", Received: time.Now()}})
	require.NoError(t, err)
	record := slices.Clone(batch)
	batch[len(batchMagic)-1]++
	record[len(batchMagic)+4]++
	for name, content := range map[string][]byte{"aa": batch, "bb": record} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+unansweredExt), content, 0o600))
	}
	s := w.open("a")
	if due, unusable := s.Again(); due != 0 || unusable != 2 {
		t.Errorf("%d due, %d not usable", due, unusable)
	}
	list, _ := s.Unanswered()
	if len(list) != 2 || list[0].Err != errNewer.Error() || list[1].Err != errNewer.Error() {
		t.Errorf("%+v", list)
	}
}

// TestKilledProcess defers returns for a master that does not answer every third, until it is killed. It says which
// were acknowledged, and which the master has answered.
func TestKilledProcess(t *testing.T) {
	dir, w := killtest.Child(t), newWorld(t)
	w.dir = dir
	var printing sync.Mutex
	say := func(what, id string) {
		printing.Lock()
		defer printing.Unlock()
		fmt.Println(what, id)
	}
	s := w.service("a", func(c *Config) { c.Python = newSayingMaster(say) })
	require.NoError(t, s.Open(t.Context()))
	for i := 0; ; i++ {
		id := fmt.Sprintf("%d-%d-%s", os.Getpid(), i, []string{"web", "db", "mute"}[i%3])
		must(t, func(f func([]byte, error)) { s.Defer(request(t, id), f) })
		say("acknowledged", id)
	}
}

// newSayingMaster returns a master that says which minions it has answered.
func newSayingMaster(say func(what, id string)) Python {
	return Python{
		Up: func() bool { return true },
		Return: func(_ context.Context, minion string, _ []byte) error {
			if strings.HasSuffix(minion, "mute") {
				return context.DeadlineExceeded
			}
			say("answered", minion)
			return nil
		},
	}
}

// TestKilledWhilePuttingAside kills the process that takes returns, again and again: at the end the master has got all
// that were acknowledged.
func TestKilledWhilePuttingAside(t *testing.T) {
	w := newWorld(t)
	acked, answered := map[string]bool{}, map[string]bool{}
	for range 6 {
		killtest.Kill(t, "TestKilledProcess", w.dir, 21, 121, func(text string) bool {
			what, id, _ := strings.Cut(text, " ")
			switch what {
			case "acknowledged":
				acked[id] = true
			case "answered":
				answered[id] = true
			default:
				t.Log(text)
			}
			return what == "acknowledged"
		})
	}
	s := w.open("a")
	patience.WaitFor(t, "the journal's end", func() bool { return pending(s, pythonName) == 0 })
	s.Again()
	patience.WaitFor(t, "the others", func() bool { return len(asideOf(s)) == 0 })
	w.set(func() {
		for _, id := range w.pyGot {
			answered[id] = true
		}
	})
	for id := range acked {
		if !answered[id] {
			t.Errorf("%s was acknowledged, and the master has never got it", id)
		}
	}
	t.Logf("%d acknowledged over 6 kills", len(acked))
}
