package returns

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/spool"
)

// A node whose journal fails has another keep a return, which comes back when the journal works again.
func TestHandOff(t *testing.T) {
	w := newWorld(t)
	w.standing["p"] = Unreachable
	p, q := w.service("p"), w.open("q")
	r := request(t, "web1")
	if _, err := take(t, func(f func([]byte, error)) { p.Take(r, f) }); err == nil || MasterMayTake(err) {
		t.Fatalf("a journal that is closed: %v", err)
	}
	for range 2 { // the answer was lost, perhaps
		if reply, err := p.HandOff(t.Context(), "p", r); err != nil || string(reply) != string(answered) {
			t.Fatalf("%x, %v", reply, err)
		}
	}
	if n := q.Kept(); n != 1 {
		t.Errorf("%d are kept", n)
	}
	require.NoError(t, p.Open(t.Context()))
	defer p.Close()
	w.set(func() { w.at["p"], w.standing["p"] = p, Reachable })
	patience.WaitFor(t, "its publisher", func() bool { return p.cache().Has(jid, "web1") })
}

func TestHandOff_Refused(t *testing.T) {
	w := newWorld(t)
	p := w.open("p")
	if _, err := p.HandOff(t.Context(), "p", request(t, "web1")); !errors.Is(err, errNoKeeper) {
		t.Errorf("error %v", err)
	}
	for range maxHandOffs {
		p.handOffs <- struct{}{}
	}
	if _, err := p.HandOff(t.Context(), "p", request(t, "web1")); !errors.Is(err, errHandOffs) {
		t.Errorf("error %v", err)
	}
}

func TestMasterMayTake(t *testing.T) {
	for err, want := range map[error]bool{
		spool.ErrTooLarge: true, spool.ErrBusy: true, spool.ErrFull: false, spool.ErrClosed: false,
		spool.ErrHangs:                   false,
		errors.New("input/output error"): false,
	} {
		if MasterMayTake(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// disk counts its syncs.
type disk struct {
	syncs  atomic.Int32
	fails  atomic.Bool
	closed atomic.Bool
}

func (d *disk) Sync(context.Context) error {
	d.syncs.Add(1)
	if d.fails.Load() {
		return errors.New("input/output error")
	}
	return nil
}

func (d *disk) Close() error {
	d.closed.Store(true)
	return nil
}

// What was deferred is synced where the master has stored it before its last copy is removed.
func TestDeferredReturnsAreSynced(t *testing.T) {
	w := newWorld(t)
	d := &disk{}
	s := w.open("a", func(c *Config) { c.Mode.Disk = d })
	must(t, func(f func([]byte, error)) { s.Defer(request(t, "web1"), f) })
	patience.WaitFor(t, "the sync of what was deferred",
		func() bool { return pending(s, pythonName) == 0 && d.syncs.Load() > 0 })

	d.fails.Store(true)
	u := s.unanswered
	require.NoError(t, u.putReturn(record(t, "web2"), errors.New("no answer"), 1))
	id := u.listReturns()[0].ID
	u.giveReturn(t.Context(), id)
	check.Equal(t, len(u.listReturns()), 1, "removed before it was synced")
	d.fails.Store(false)
	u.giveReturn(t.Context(), id)
	check.Equal(t, len(u.listReturns()), 0, "not removed")
}

// What another node kept is given up there only when what the local master has stored of it meanwhile survives a power
// loss.
func TestKnownReturnsAreSynced(t *testing.T) {
	for name, take := range map[string]func(*Service, spool.Record) error{
		"handed over": func(s *Service, rec spool.Record) error {
			return s.acceptBatch(t.Context(), "a", []spool.Record{rec})
		},
		"adopted": func(s *Service, rec spool.Record) error { return s.adoptOne(t.Context(), rec) },
	} {
		t.Run(name, func(t *testing.T) {
			w, d := newWorld(t), &disk{}
			s := w.open("p", func(c *Config) { c.Mode = Mode{Reasons: map[string]string{"_return": "off"}, Disk: d} })
			r := request(t, "m1")
			s.Answered(r.Minion, r.Load)
			rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: "p", Load: r.Load}
			d.fails.Store(true)
			if err := take(s, rec); err == nil {
				t.Error("taken, though the disk has failed")
			}
			d.fails.Store(false)
			if err := take(s, rec); err != nil || d.syncs.Load() != 2 {
				t.Errorf("%v after %d syncs", err, d.syncs.Load())
			}
		})
	}
}

// Where the disk may have lost what the master stored, it gets everything since then again, also what it had out of
// turn.
func TestReplayBeginsAgain(t *testing.T) {
	w := newWorld(t)
	s := w.service("p")
	r := &replay{s: s, done: map[uint64]bool{}, failed: map[uint64]*failure{}}
	batch := []spool.Record{record(t, "m1"), record(t, "m2"), record(t, "m3")}
	for i := range batch {
		batch[i].Seq = uint64(i) + 1
	}
	w.pyErr["m2"] = errors.New("no answer")
	if n, err := r.consumeBatch(t.Context(), batch); n != 1 || err == nil {
		t.Fatalf("%d done, %v", n, err)
	}
	w.set(func() { w.pyErr, w.pyGot = nil, nil })
	if n, err := r.consumeBatch(t.Context(), batch); n != 3 || err != nil {
		t.Fatalf("%d done, %v", n, err)
	}
	slices.Sort(w.pyGot)
	check.Equal(t, strings.Join(w.pyGot, " "), "m1 m2 m3", "the master")
	if n, err := r.consumeBatch(t.Context(), batch[:1]); n != 1 || err != nil || len(r.done) != 0 {
		t.Errorf("%d done, %v; remembered %v", n, err, r.done)
	}
}

// TestAcceptBatch_PlannerMalformed: what only the planner here finds malformed, since another version took it, is not
// lost: its minion was answered long ago. The local master decides what it is.
func TestAcceptBatch_PlannerMalformed(t *testing.T) {
	for name, to := range map[string]string{"its own": "", "kept for it": "p", "kept for a node that is gone": "gone"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.standing["gone"] = Removed
			p := w.open("p")
			r := request(t, "web1", "return", saltwire.Value("\xc7\x18\x4e20261332T00:00:00.000000")) // a day that is none
			if _, err := saltwire.PeekLoad(r.Load); err != nil {
				t.Fatalf("the test's load is malformed for all: %v", err)
			}
			if _, _, err := p.planReturn(r); !errors.Is(err, ErrMalformed) {
				t.Fatalf("the planner says: %v", err)
			}
			rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: to, Load: r.Load}
			require.NoError(t, p.acceptBatch(t.Context(), "a", []spool.Record{rec}))
			patience.WaitFor(t, "the master", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return slices.Contains(w.pyGot, "web1") })
		})
	}
}
