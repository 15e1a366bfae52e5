package fanout

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/epochs"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
	"saltclusterd/sidecar/saltwire"
)

// nobody is a network in which nobody answers.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("nobody is there")
}

// withPeer opens the hub, with the peer b.
func (f *hubFixture) withPeer(t *testing.T) *origin {
	t.Helper()
	f.cfg.HTTP = &http.Client{Transport: nobody{}}
	require.NoError(t, f.Open(t.Context()))
	t.Cleanup(func() { _ = f.Close() })
	f.SetPeers([]node.ID{"a", "b"})
	o, _ := f.in.beginStream("b", "run", func() {})
	return o
}

func job(t *testing.T, jid, tgt string) Publication {
	t.Helper()
	return Publication{Plain: plainPub(t, map[string]any{
		"fun": "test.ping", "arg": []any{}, "tgt": tgt, "tgt_type": "glob", "jid": jid, "ret": "", "serial": 1,
	})}
}

// givenLate is what subscribers alone were given but the nudges, which have no serial.
func (f *hubFixture) givenLate(t *testing.T, m *epochs.Material) (all [][]saltwire.PubPeek, plain []string) {
	t.Helper()
	f.edge.mu.Lock()
	defer f.edge.mu.Unlock()
	for _, g := range f.edge.given {
		var one []saltwire.PubPeek
		for _, p := range g.pubs {
			env, err := saltwire.ParsePub(p.Body)
			require.NoError(t, err)
			if peek := f.open(t, p.Body, m); peek.HasSerial {
				one = append(one, peek)
				text, err := m.Crypticle.Open(nil, env.Load)
				require.NoError(t, err)
				plain = append(plain, string(text))
			}
		}
		if len(one) > 0 {
			all = append(all, one)
		}
	}
	return all, plain
}

// TestCatchUp_Newcomer: a newcomer is given what it missed in the order of publication, with growing serials, except
// for minions of which a process has started since, and those that the keys tell of.
func TestCatchUp_Newcomer(t *testing.T) {
	f := newHubFixture(t)
	f.cfg.LeaveOut = func(ids []string, _ time.Duration) []string {
		if slices.Contains(ids, "web2") {
			return append(ids, "web4")
		}
		return ids
	}
	m := f.begin(t, 1, 0)
	f.SignedIn("web1", []byte("old"))
	f.processes.SignedIn(startedAt("web1", "old", time.Now().Add(-time.Hour))) // known for long
	o := f.withPeer(t)
	require.NoError(t, f.publish(job(t, "20261128000000000001", "web*")))
	f.remotePublication("b", job(t, "20261128000000000002", "*"), time.Now())
	f.SignedIn("web1", []byte("old"))
	f.processes.SignedIn(startedAt("web2", "new", time.Now().Add(2*lateMargin)))
	f.processes.SignedIn(startedAt("web3", "new", time.Now())) // the one before had ended by then
	f.edge.come(2)
	patience.WaitNil(t, func() error { // until the peer has said who has started there
		f.beats.noteAnswered(o, f.beats.stampAt(time.Now()))
		if all, _ := f.givenLate(t, m); len(all) == 0 {
			return errors.New("nothing given")
		}
		return nil
	})
	all, plain := f.givenLate(t, m)
	if len(all[0]) != 2 || all[0][0].JID != "20261128000000000001" || all[0][1].JID != "20261128000000000002" {
		t.Fatalf("given %+v", all)
	}
	last := f.open(t, f.edge.pubs[len(f.edge.pubs)-1].Body, m).Serial
	for i, peek := range all[0] {
		if peek.Serial <= last {
			t.Errorf("serial %d after %d", peek.Serial, last)
		}
		last = peek.Serial
		if peek.TgtType != "compound" || !strings.Contains(plain[i], ") and * and not L@web2,web4") ||
			strings.Contains(plain[i], "web3") {
			t.Errorf("for %s %q", peek.TgtType, plain[i])
		}
	}
	check.Equal(t, testutil.ToFloat64(f.metrics.late.WithLabelValues("given")), 4, "counted")
	if f.edge.given[0].subscribers != 2 || len(f.edge.given[0].pubs) != 1 {
		t.Errorf("no nudge at first: %+v", f.edge.given[0])
	}
}

// TestCatchUp_Stopped: a job that was stopped since is not given, nor one from before all were.
func TestCatchUp_Stopped(t *testing.T) {
	call := func(jid, fun string, arg ...any) Publication {
		return Publication{Plain: plainPub(t, map[string]any{
			"fun": fun, "arg": arg, "tgt": "*", "tgt_type": "glob", "jid": jid, "ret": "", "serial": 1,
		})}
	}
	const first, second, third, stop = "20261128000000000001", "20261128000000000002", "20261128000000000003",
		"20261128000000000009"
	for name, c := range map[string]struct {
		stop Publication
		want []string
	}{
		"one": {call(stop, "saltutil.kill_job", first), []string{second, third}},
		"one, as a kwarg": {call(stop, "saltutil.term_job", map[string]any{"jid": second, "__kwarg__": true}),
			[]string{first, third}},
		"one, by a signal": {call(stop, "saltutil.signal_job", third, 9), []string{first, second}},
		"all":              {call(stop, "saltutil.kill_all_jobs"), nil},
		"none":             {call(stop, "saltutil.find_job", first), []string{first, second, third}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHubFixture(t)
			m := f.begin(t, 1, 0)
			o := f.withPeer(t)
			for _, jid := range []string{first, second} {
				require.NoError(t, f.publish(call(jid, "cmd.run", "reboot")))
			}
			f.remotePublication("b", call(third, "cmd.run", "reboot"), f.now())
			require.NoError(t, f.publish(c.stop))
			require.NoError(t, f.publish(call("20261128000000000010", "test.ping")))
			f.edge.come(1)
			patience.WaitFor(t, "the newcomer is given something", func() bool {
				f.in.noteBeat(o, beat{stamp: 1, echo: f.beats.stampAt(f.now())}, f.now())
				all, _ := f.givenLate(t, m)
				return len(all) > 0
			})
			all, _ := f.givenLate(t, m)
			var got []string
			for _, p := range all[0] {
				got = append(got, p.JID)
			}
			check.EqualSlices(t, got, append(c.want, stop, "20261128000000000010"), "what it is given")
		})
	}
}

// TestCatchUp_Suspended wants nothing given that is too old because the host was suspended: neither to a subscriber that
// has just come, nor to a peer, nor to all when a peer had brought it late.
func TestCatchUp_Suspended(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	require.NoError(t, f.publish(job(t, "20261128000000000001", "*")))
	f.isOverdue(overdue{late.Publication{JID: "20261128000000000002", Plain: job(t, "20261128000000000002", "*").Plain,
		At: f.now()}, f.now()})
	if recs, _, _ := f.out.recordsAfter(0, make([]record, 0, 1)); len(recs) != 1 {
		t.Fatalf("%d records for peers", len(recs))
	}
	f.cfg.Elapsed = func() time.Duration { return hlc.Elapsed() + MaxAge }
	if recs, missed, _ := f.out.recordsAfter(0, make([]record, 0, 1)); len(recs) != 0 || missed != 1 {
		t.Errorf("%d records for peers, %d missed", len(recs), missed)
	}
	if n := len(f.memory.Since(f.now().Add(-MaxAge))); n > 0 {
		t.Errorf("%d publications for those who come", n)
	}
	c := &catchUp{h: f.Hub}
	c.takeOverdue()
	c.publishOverdue(t.Context(), f.now())
	if len(f.edge.pubs) != 1 || len(c.overdue) != 0 {
		t.Errorf("%d published, %d wait; one was before", len(f.edge.pubs), len(c.overdue))
	}
}

// TestCatchUp_RestartedNode: a peer gives a restarted node what it had heard itself, the node's own included, and the
// node passes that on when another one is restarted. What the peer has published is in its outbox.
func TestCatchUp_RestartedNode(t *testing.T) {
	peer := newHubFixture(t)
	peer.begin(t, 1, 0)
	require.NoError(t, peer.publish(job(t, "20261128000000000001", "*")))
	peer.remotePublication("b", job(t, "20261128000000000002", "web*"), time.Now())
	peer.remotePublication("c", job(t, "20261128000000000003", "*"), time.Now())
	back := peer.keptFromOthers()
	if jids(back) != "2 3" {
		t.Fatalf("kept: %+v", back)
	}

	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	o := f.withPeer(t)
	for _, p := range append(back, back[1]) { // one by another peer, too
		payload, err := appendEarlier(nil, p, time.Now())
		require.NoError(t, err)
		require.NoError(t, f.in.noteEarlier(payload, time.Now()))
	}
	if on := f.keptFromOthers(); jids(on) != "2 3" {
		t.Errorf("passed on: %+v", on)
	}
	f.edge.come(1)
	patience.WaitNil(t, func() error {
		f.beats.noteAnswered(o, f.beats.stampAt(time.Now()))
		if all, _ := f.givenLate(t, m); len(all) != 1 || len(all[0]) != 2 || all[0][0].JID != "20261128000000000002" {
			return fmt.Errorf("given %+v", all)
		}
		return nil
	})
	check.Equal(t, len(f.edge.pubs), 0, "published anew")
}

// TestStream_StoodStill: what had come from a peer when this process stood still is not taken from its stream, which the
// peer has given up by then, but sent again with its age.
func TestStream_StoodStill(t *testing.T) {
	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	f.cfg.NotLate = func() bool { return true } // it would be given at once
	var stood atomic.Int64
	f.cfg.Elapsed = func() time.Duration { return hlc.Elapsed() + time.Duration(stood.Load()) }
	o := f.withPeer(t)
	in, out := io.Pipe()
	defer out.Close()
	ended := make(chan error, 1)
	go func() {
		_, seq := f.in.beginStream("b", "run", func() {})
		ended <- f.in.takeRecords(t.Context(), "b", "run", o, seq, true, bufio.NewReader(in), httptest.NewRecorder())
	}()
	send := func(seq uint64, jid string) {
		payload, err := appendPublication(nil, job(t, jid, "*"))
		require.NoError(t, err)
		_, _ = out.Write(appendRecord(nil, header{kind: kindPublication, seq: seq, clock: f.cfg.Clock.Last()}, payload))
	}
	jids := func() (all []string) {
		f.edge.mu.Lock()
		defer f.edge.mu.Unlock()
		for _, p := range f.edge.pubs {
			all = append(all, f.open(t, p.Body, m).JID)
		}
		return all
	}
	send(1, "20261128000000000001")
	patience.WaitFor(t, "the first", func() bool { return len(jids()) == 1 })
	stood.Store(int64(MaxAge))
	go send(2, "20261128000000000002")
	var err error
	patience.WaitFor(t, "the end of the stream", func() bool {
		select {
		case err = <-ended:
			return true
		default:
			return len(jids()) > 1
		}
	})
	if got := jids(); len(got) != 1 || !errors.Is(err, errSilent) {
		t.Errorf("published %q; the stream ended with %v", got, err)
	}
}

// TestLateFromAPeer: what a peer brings late is published as what is given late, when it is known who has started; what
// is new at once.
func TestLateFromAPeer(t *testing.T) {
	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	o := f.withPeer(t)
	f.remotePublication("b", job(t, "20261128000000000001", "*"), time.Now().Add(-10*time.Second))
	f.remotePublication("b", job(t, "20261128000000000002", "*"), time.Now())
	f.remotePublication("b", job(t, "20261128000000000003", "*"), time.Now().Add(-2*MaxAge))
	published := func() (jids []string, kinds []string) {
		f.edge.mu.Lock()
		defer f.edge.mu.Unlock()
		for _, p := range f.edge.pubs {
			peek := f.open(t, p.Body, m)
			jids, kinds = append(jids, peek.JID), append(kinds, peek.TgtType)
		}
		return jids, kinds
	}
	if jids, _ := published(); len(jids) != 1 || jids[0] != "20261128000000000002" {
		t.Fatalf("published %q", jids)
	}
	patience.WaitNil(t, func() error {
		f.beats.noteAnswered(o, f.beats.stampAt(time.Now()))
		jids, kinds := published()
		if len(jids) != 2 || jids[1] != "20261128000000000001" || kinds[1] != "compound" {
			return fmt.Errorf("published %q for %q", jids, kinds)
		}
		return nil
	})
	patience.WaitNil(t, func() error { // the third is too old
		if f.busy.Load() {
			return errors.New("something is waited for")
		}
		return nil
	})
	if jids, _ := published(); len(jids) != 2 {
		t.Errorf("published %q", jids)
	}
}

// TestTakeOverdue_Bounded: what is too much is dropped from the front, and counted as missed.
func TestTakeOverdue_Bounded(t *testing.T) {
	f := newHubFixture(t)
	c := &catchUp{h: f.Hub, overdue: make([]overdue, lateCount)}
	f.overdue = []overdue{{Publication: late.Publication{JID: "1"}}, {Publication: late.Publication{JID: "2"}}}
	c.takeOverdue()
	if n := len(c.overdue); n != lateCount || c.overdue[n-1].JID != "2" {
		t.Errorf("%d are kept, the last is %q", n, c.overdue[n-1].JID)
	}
	check.Equal(t, testutil.ToFloat64(f.metrics.late.WithLabelValues("unknown")), 2, "counted")
}

// TestVersionsBefore: a peer that does not tell how old its publications are has them published at once and not given
// late; beside a peer that does not tell what has started there, nothing waits for that.
func TestVersionsBefore(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	o := f.withPeer(t)
	f.remotePublication("b", job(t, "20261128000000000001", "*"), time.Time{})
	if len(f.edge.pubs) != 1 || len(f.memory.Since(time.Time{})) != 0 {
		t.Fatalf("%d published, %d kept", len(f.edge.pubs), len(f.memory.Since(time.Time{})))
	}
	f.in.noteBeat(o, beat{}, time.Now())
	f.remotePublication("b", job(t, "20261128000000000002", "*"), time.Now().Add(-10*time.Second))
	if len(f.edge.pubs) != 2 {
		t.Fatalf("%d published", len(f.edge.pubs))
	}
}

// TestSignedIn_CutOff: a node that is cut off lets no new process in, because others may give the minion a job that it
// had run before it was restarted.
func TestSignedIn_CutOff(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	minority := true
	f.cfg.Minority = func() bool { return minority }
	o := f.withPeer(t)
	f.beats.began = time.Now().Add(-time.Hour)
	try := func(what, token string, silent time.Duration, want bool) {
		t.Helper()
		o.told.Store(f.beats.sinceStart(time.Now().Add(-silent)))
		check.Equal(t, f.SignedIn("web1", []byte(token)), want, what, "let in")
	}
	try("in touch", "a", 0, true)
	try("silent", "b", cutAfter+time.Second, false)
	try("silent, but known", "a", cutAfter+time.Second, true)
	try("alone for long", "c", cutFor+time.Second, true)
	minority = false
	try("one of the majority", "d", cutAfter+time.Second, true)
	o.told.Store(0)
	minority = true
	if !f.SignedIn("web1", []byte("e")) {
		t.Error("never in touch: not let in")
	}
	f.out.setFrozen(true)
	if f.SignedIn("web1", []byte("f")) || !f.SignedIn("web1", []byte("a")) {
		t.Error("while another process takes over, only who is known is let in")
	}
	f.cfg.NotLate = func() bool { return true }
	if !f.SignedIn("web1", []byte("f")) {
		t.Error("where nothing is given late, somebody is not let in")
	}
}

// TestNotLate_Syndic: a syndic remembers no jobs, so nothing is given late.
func TestNotLate_Syndic(t *testing.T) {
	f := newHubFixture(t)
	f.cfg.NotLate = func() bool { return true }
	f.begin(t, 1, 0)
	f.remotePublication("b", job(t, "20261128000000000001", "*"), time.Now().Add(-10*time.Second))
	if len(f.edge.pubs) != 1 || len(f.memory.Since(time.Time{})) != 0 {
		t.Fatalf("%d published, %d kept", len(f.edge.pubs), len(f.memory.Since(time.Time{})))
	}
}

// TestKnown: from when on it is safe to give what was published, at a node with the peers b and c.
func TestKnown(t *testing.T) {
	now := time.Now()
	came := now.Add(-time.Second)
	ago := func(seconds int) time.Time { return came.Add(-time.Duration(seconds) * time.Second) }
	for _, test := range []struct {
		name     string
		told     time.Time    // b has told everything until then
		heard    time.Time    // b was heard last
		gap      time.Time    // its run before was
		refused  [2]time.Time // from when until when nobody listened at b
		away     bool         // nobody reaches b
		minority bool
		withhold bool
		known    bool
		from     time.Time
	}{
		{name: "told everything", told: came.Add(time.Millisecond), known: true},
		{name: "told everything but the last", told: came.Add(-time.Millisecond), heard: now},
		{name: "told nothing", heard: now},
		{name: "nobody reaches it", away: true, heard: ago(20), known: true, from: ago(20).Add(-unheard)},
		{name: "nobody has reached it for long", away: true, heard: ago(80)},
		{name: "nobody listens there", refused: [2]time.Time{now, now}, heard: ago(80), known: true,
			from: ago(80).Add(-unheard)},
		{name: "nobody listened there", refused: [2]time.Time{ago(30), ago(20)}, heard: ago(80)},
		{name: "it was killed", refused: [2]time.Time{ago(19), now}, told: ago(21), heard: ago(20), known: true},
		{
			name: "it was killed when it was cut off", refused: [2]time.Time{ago(19), now}, told: ago(24), heard: ago(20),
			known: true, from: ago(20).Add(-unheard),
		},
		{
			name: "it was cut off and then killed", refused: [2]time.Time{ago(10), now}, told: ago(21), heard: ago(20),
			known: true, from: ago(20).Add(-unheard),
		},
		{
			name: "it was killed for a second time", refused: [2]time.Time{ago(19), now}, told: ago(21), heard: ago(20),
			gap:   ago(30),
			known: true, from: ago(30).Add(-unheard),
		},
		{name: "it was away for a moment", told: came.Add(time.Millisecond), away: true, known: true},
		{name: "it ended and has started", told: came.Add(time.Millisecond), gap: ago(10), known: true,
			from: ago(10).Add(-unheard)},
		{name: "perhaps nobody reaches us", told: came.Add(time.Millisecond), minority: true},
		{name: "behind", told: came.Add(time.Millisecond), withhold: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newHubFixture(t)
			f.beats.began = came.Add(-time.Hour)
			f.begin(t, 1, 0)
			f.cfg.Away = func(id node.ID) bool { return id == "b" && test.away }
			f.cfg.Minority = func() bool { return test.minority }
			f.cfg.Withhold = func() bool { return test.withhold }
			b := f.withPeer(t)
			f.SetPeers([]node.ID{"a", "b", "c"})
			c, _ := f.in.beginStream("c", "run", func() {})
			for v, at := range map[*atomic.Int64]time.Time{&b.told: test.told, &b.heard: test.heard, &b.gap: test.gap} {
				if !at.IsZero() {
					v.Store(f.beats.sinceStart(at))
				}
			}
			c.told.Store(f.beats.sinceStart(now))
			refused := &refusals{}
			for at := test.refused[0]; !at.IsZero() && !at.After(test.refused[1]); at = at.Add(time.Second) {
				refused.noteResult(true, at)
			}
			f.mu.Lock()
			f.links["b"] = &linked{cancel: f.links["b"].cancel, refused: refused} // the link goes on with the one that it had
			f.mu.Unlock()
			from, known := f.knownFrom(came, now)
			if known != test.known || known && !from.Truncate(time.Millisecond).Equal(test.from.Truncate(time.Millisecond)) {
				t.Errorf("%t from %s, want %t from %s", known, from, test.known, test.from)
			}
		})
	}
}

// TestCatchUp_Moved: subscribers that sign in again after a change of the AES key are given what came meanwhile
// and no more; newcomers are given everything.
func TestCatchUp_Moved(t *testing.T) {
	f := newHubFixture(t)
	m := f.begin(t, 1, 0)
	now := time.Now()
	for i, before := range []time.Duration{20 * time.Second, time.Second, -time.Second, 10 * time.Second} {
		p := job(t, fmt.Sprint("2026112800000000000", i), "*")
		came := now.Add(-before)
		if i == 3 { // a peer brings it late
			came = now
		}
		f.rememberLate(fmt.Sprint("2026112800000000000", i), "a", p, now.Add(-before), came)
	}
	c := &catchUp{h: f.Hub}
	c.takeMoved(make([]edge.Newcomer, 3))
	c.noteArrivals(make([]edge.Newcomer, 2))
	jobs := func(at time.Time) (jids []string, subscribers int) {
		f.edge.given = nil
		c.serveDue(t.Context(), at)
		c.serveMoved(t.Context(), at)
		all, _ := f.givenLate(t, m)
		for _, g := range all {
			for _, peek := range g {
				jids = append(jids, peek.JID[19:])
			}
		}
		for _, g := range f.edge.given {
			subscribers += g.subscribers
		}
		return jids, subscribers
	}
	for _, step := range []struct {
		after       time.Duration
		jids        string
		subscribers int
	}{
		{lateAfter + lateTick, "0 3 1 2", 2},
		{lateAgain + lateTick, "0 3 1 2", 2}, // once more, for those who have come after a change of the AES key
		{lateAgain + 2*latePause, "3 1 2", 3},
		{lateAgain + 5*latePause, "", 0},
		{3 * lateAgain, "0 3 1 2", 2}, // and more, for those whose sign-in takes long
		{3*lateAgain + 2*latePause, "3 1 2", 3},
	} {
		if c.changed.IsZero() {
			c.changed = now
		}
		if ids, n := jobs(now.Add(step.after)); strings.Join(ids, " ") != step.jids || n != step.subscribers {
			t.Errorf("after %s: %q for %d, want %q for %d", step.after, ids, n, step.jids, step.subscribers)
		}
	}
}

// TestCatchUp_MovedTwice: subscribers that are told of another AES key before they were given what came at the one before
// are given it at the end of both, and once: a minion refuses a second copy with the same serial.
func TestCatchUp_MovedTwice(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	now := time.Now()
	came := now.Add(-lateAgain)
	f.rememberLate("20261128000000000001", "a", job(t, "20261128000000000001", "*"), came, came)
	c := &catchUp{h: f.Hub}
	c.moved = []arrival{{who: make([]edge.Newcomer, 2), came: came, due: now, since: came.Add(-movedFrom)}}
	c.takeMoved(make([]edge.Newcomer, 2)) // the same
	c.serveMoved(t.Context(), now)
	c.serveMoved(t.Context(), now.Add(lateAgain+latePause))
	c.serveMoved(t.Context(), now.Add(2*lateAgain+2*latePause))
	if len(f.edge.given) != 2 || f.edge.given[0].subscribers != 2 || f.edge.given[1].subscribers != 2 {
		t.Errorf("given %+v, want twice to two", f.edge.given)
	}
}

// TestCatchUp_Ends: nothing is given again when all that came at the change of the AES key is forgotten, and what waits is
// bounded by that.
func TestCatchUp_Ends(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	now := time.Now()
	f.rememberLate("20261128000000000001", "a", job(t, "20261128000000000001", "*"), now, now)
	c := &catchUp{h: f.Hub, changed: now}
	c.takeMoved(make([]edge.Newcomer, 1))
	c.noteArrivals(make([]edge.Newcomer, 1))
	for after := time.Duration(0); after < MaxAge+lateAgain; after += lateTick {
		c.serveDue(t.Context(), now.Add(after))
		c.serveMoved(t.Context(), now.Add(after))
	}
	if len(c.moved)+len(c.waiting) > 0 {
		t.Errorf("%d and %d wait for good", len(c.moved), len(c.waiting))
	}
	if n := len(f.edge.given); n < 6 || n > 10 {
		t.Errorf("given %d times", n)
	}
}

// TestCatchUp_Turns: who subscribes time and again does not keep those waiting that were told of another AES key.
func TestCatchUp_Turns(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	now := time.Now()
	f.rememberLate("20261128000000000001", "a", job(t, "20261128000000000001", "*"), now, now)
	c := &catchUp{h: f.Hub}
	const minions = 100
	c.takeMoved(make([]edge.Newcomer, minions))
	for at := now; at.Sub(now) < lateAgain+3*latePause; at = at.Add(lateTick) {
		c.waiting = append(c.waiting, arrival{who: make([]edge.Newcomer, 1), came: at, due: at})
		c.serveNext(t.Context(), at)
	}
	moved := 0
	for _, g := range f.edge.given {
		if g.subscribers >= minions {
			moved++
		}
	}
	if moved != 1 || len(f.edge.given) < 6 {
		t.Errorf("of %d times, %d were for those that were there, want one", len(f.edge.given), moved)
	}
}

// TestMovedWaitForPeers: who was moved to another AES key is given what it may have missed when all peers have told who
// started.
func TestMovedWaitForPeers(t *testing.T) {
	f := newHubFixture(t)
	f.begin(t, 1, 0)
	o := f.withPeer(t)
	now := time.Now()
	f.rememberLate("20261128000000000001", "a", job(t, "20261128000000000001", "*"), now, now)
	c := &catchUp{h: f.Hub}
	c.takeMoved(make([]edge.Newcomer, 3))
	at := now.Add(lateAgain + lateTick)
	if c.serveMoved(t.Context(), at); len(c.moved) != 1 || len(f.edge.given) != 0 {
		t.Fatalf("%d wait, given %v", len(c.moved), f.edge.given)
	}
	f.beats.noteAnswered(o, f.beats.stampAt(time.Now()))
	if c.serveMoved(t.Context(), at); len(f.edge.given) != 1 || f.edge.given[0].subscribers != 3 {
		t.Errorf("%d wait, given %v", len(c.moved), f.edge.given)
	}
	if c.serveMoved(t.Context(), now.Add(MaxAge+lateAgain)); len(c.moved) != 0 {
		t.Errorf("%d wait for good", len(c.moved))
	}
}

// TestGap: what the run of a peer before may not have told, and so since when nothing is given that was published
// earlier.
func TestGap(t *testing.T) {
	for _, test := range []struct {
		name               string
		told, heard, ended time.Duration // ago; ended zero: not known
		gap                bool
	}{
		{name: "restarted", told: 1500 * time.Millisecond, heard: time.Second},
		{name: "killed, and away for long", told: 31 * time.Second, heard: 30 * time.Second, ended: 29 * time.Second},
		{name: "cut off, then restarted", told: 9 * time.Second, heard: 4 * time.Second, gap: true},
		{name: "silent for long", told: 31 * time.Second, heard: 30 * time.Second, gap: true},
		{name: "silent for long, and had ended before", told: 31 * time.Second, heard: 30 * time.Second,
			ended: 40 * time.Second, gap: true},
		{name: "silent, then ended", told: 31 * time.Second, heard: 30 * time.Second, ended: 20 * time.Second, gap: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newHubFixture(t)
			now := time.Now()
			f.beats.began = now.Add(-time.Hour)
			f.in.ended = func(node.ID) time.Time {
				if test.ended == 0 {
					return time.Time{}
				}
				return now.Add(-test.ended)
			}
			b, _ := f.in.beginStream("b", "run1", func() {})
			b.told.Store(f.beats.sinceStart(now.Add(-test.told)))
			b.heard.Store(f.beats.sinceStart(now.Add(-test.heard)))
			f.in.beginStream("b", "run2", func() {})
			check.Equal(t, b.gap.Load() > 0, test.gap, "gap")
		})
	}
}

// TestBeatsOfAnotherRun: an echo of what was not sent says nothing.
func TestBeatsOfAnotherRun(t *testing.T) {
	b, other, o := newBeats(time.Now), newBeats(time.Now), &origin{}
	for _, stamp := range []uint64{0, b.base - 1, b.stampAt(time.Now().Add(time.Minute)), other.stampAt(time.Now())} {
		if b.noteAnswered(o, stamp); o.told.Load() != 0 {
			t.Fatalf("%d: told until %d", stamp, o.told.Load())
		}
	}
	b.noteAnswered(o, b.stampAt(time.Now().Add(-time.Microsecond)))
	now := o.told.Load()
	if b.noteAnswered(o, b.base); o.told.Load() != now {
		t.Error("an older echo counts")
	}
}

// TestRecent_ExportImport: another process knows what may be given late, and which minion has started when.
func TestRecent_ExportImport(t *testing.T) {
	old, newHub := newHubFixture(t), newHubFixture(t)
	old.begin(t, 1, 0)
	require.NoError(t, old.publish(Publication{Plain: job(t, "20261128000000000001", "*").Plain, Topics: []string{"x", "y"}}))
	old.processes.SignedIn(startedAt("web1", "a", time.Now().Add(-time.Hour)))
	old.processes.SignedIn(startedAt("web2", "b", time.Now().Add(-time.Second)))
	record := old.ExportRecent()
	require.NoError(t, newHub.ImportRecent(record))
	got := newHub.memory.Since(time.Now().Add(-MaxAge))
	if len(got) != 1 || got[0].JID != "20261128000000000001" || len(got[0].Topics) != 2 ||
		time.Since(got[0].At) > time.Minute {
		t.Errorf("%+v", got)
	}
	if ids := newHub.processes.Since(time.Now().Add(-30 * time.Second)); len(ids) != 1 || ids[0] != "web2" ||
		len(newHub.processes.All()) != 2 {
		t.Errorf("%q of %+v", ids, newHub.processes.All())
	}
	if err := newHub.ImportRecent(record[:len(record)-1]); err == nil {
		t.Error("half a record is taken")
	}
}

// jids is the end of each id.
func jids(pubs []late.Publication) string {
	var out []string
	for _, p := range pubs {
		out = append(out, strings.TrimLeft(p.JID[8:], "0"))
	}
	return strings.Join(out, " ")
}

func startedAt(id, token string, at time.Time) late.Start {
	return late.Start{ID: id, Process: late.ProcessOf([]byte(token)), At: at}
}

var _ Publisher = (*edge.PubEdge)(nil)
