package returns

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/spool"
)

func record(t testing.TB, minion string) spool.Record {
	r := request(t, minion)
	return spool.Record{Received: time.Unix(1, 2), Minion: minion, JID: r.JID, To: "b", Load: r.Load}
}

func TestBatchRoundTrip(t *testing.T) {
	in := []spool.Record{record(t, "web1"), record(t, "web2")}
	body, n, err := appendBatch(nil, in)
	if err != nil || n != 2 {
		t.Fatal(n, err)
	}
	out, err := parseBatch(body)
	if err != nil || len(out) != 2 {
		t.Fatal(out, err)
	}
	for i := range in {
		if out[i].Minion != in[i].Minion || !out[i].Received.Equal(in[i].Received) || !bytes.Equal(out[i].Load, in[i].Load) {
			t.Errorf("%+v became %+v", in[i], out[i])
		}
	}
}

func TestAppendBatch_Full(t *testing.T) {
	big := record(t, "web1")
	big.Load = make([]byte, MaxBatch/2)
	if _, n, err := appendBatch(nil, []spool.Record{big, big, big}); n != 1 || err != nil {
		t.Errorf("%d records, %v", n, err)
	}
	big.Load = make([]byte, MaxBatch)
	if _, _, err := appendBatch(nil, []spool.Record{big}); !errors.Is(err, spool.ErrTooLarge) {
		t.Errorf("error %v", err)
	}
}

// What is not known to be in a journal is not answered as taken, although it may get there.
func TestAwaitDone_NoAnswer(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	check.ErrorIs(t, awaitDone(gone, func(func(error)) {}), context.Canceled)
	check.ErrorIs(t, awaitDone(t.Context(), func(done func(error)) { done(spool.ErrFull) }), spool.ErrFull)
}

func FuzzParseBatch(f *testing.F) {
	body, _, err := appendBatch(nil, []spool.Record{record(f, "web1"), record(f, "web2")})
	require.NoError(f, err)
	f.Add(body)
	f.Add(body[:len(body)-1])
	f.Add([]byte(batchMagic + "\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, body []byte) {
		batch, err := parseBatch(body)
		if err != nil {
			return
		}
		again, n, err := appendBatch(nil, batch)
		if err != nil || n != len(batch) || !bytes.Equal(again, body) {
			t.Fatalf("%d records do not survive encoding: %v", len(batch), err)
		}
	})
}

func TestHandler(t *testing.T) {
	w := newWorld(t)
	s := w.open("b")
	member := func(context.Context) (node.ID, bool) { return "a", true }
	stranger := func(context.Context) (node.ID, bool) { return "", false }
	good, _, _ := appendBatch(nil, []spool.Record{record(t, "web1")})
	forged := record(t, "web1")
	forged.Minion = "web2" // not who the load says
	odd, _, _ := appendBatch(nil, []spool.Record{forged, record(t, "web3")})
	for _, c := range []struct {
		name string
		from func(context.Context) (node.ID, bool)
		verb string
		body string
		want int
	}{
		{"stranger", stranger, http.MethodPost, string(good), http.StatusForbidden},
		{"get", member, http.MethodGet, "", http.StatusForbidden},
		{"garbage", member, http.MethodPost, "garbage", http.StatusBadRequest},
		{"good", member, http.MethodPost, string(good), http.StatusOK},
		{"one that is no return", member, http.MethodPost, string(odd), http.StatusOK},
	} {
		rec := httptest.NewRecorder()
		s.Handler(c.from).ServeHTTP(rec, httptest.NewRequest(c.verb, Path, strings.NewReader(c.body)))
		if rec.Code != c.want {
			t.Errorf("%s: %d, want %d (%s)", c.name, rec.Code, c.want, rec.Body)
		}
	}
	patience.WaitFor(t, "the job cache", func() bool { return s.cache().Has(jid, "web1") && s.cache().Has(jid, "web3") })
	if s.cache().Has(jid, "web2") {
		t.Error("a load was taken for another minion's")
	}
	require.NoError(t, s.Close())
	rec := httptest.NewRecorder()
	body, _, _ := appendBatch(nil, []spool.Record{record(t, "web4")})
	s.Handler(member).ServeHTTP(rec, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(body)))
	check.Equal(t, rec.Code, http.StatusServiceUnavailable, "a closed journal answers")
}

func TestHandler_Limits(t *testing.T) {
	w := newWorld(t)
	s := w.open("b")
	member := func(context.Context) (node.ID, bool) { return "a", true }
	good, _, _ := appendBatch(nil, []spool.Record{record(t, "web1")})
	post := func(length int64) int {
		r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(good))
		r.ContentLength = length
		rec := httptest.NewRecorder()
		s.Handler(member).ServeHTTP(rec, r)
		return rec.Code
	}
	s.served.Add(maxServed - 10) // somebody's, being taken
	for length, want := range map[int64]int{
		-1: http.StatusLengthRequired, MaxBatch + 1: http.StatusLengthRequired,
		int64(len(good)): http.StatusServiceUnavailable,
	} {
		check.Equal(t, post(length), want, length, "bytes")
	}
	s.served.Add(10 - maxServed)
	if got := post(int64(len(good))); got != http.StatusOK || s.served.Load() != 0 {
		t.Errorf("%d; %d bytes are held", got, s.served.Load())
	}
}

// A peer hands over a batch, its connection breaks while the records wait for the disk, and it hands them over again.
// Each is fired once.
func TestBatchWhoseSenderGoesAway(t *testing.T) {
	for name, kept := range map[string]node.ID{"for this node": "p", "for another": "q"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.standing["q"] = Unreachable
			s := w.open("p")
			r := request(t, "m1")
			rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: string(kept), Load: r.Load}
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			_ = s.acceptBatch(gone, "a", []spool.Record{rec})
			require.NoError(t, s.acceptBatch(t.Context(), "a", []spool.Record{rec}))
			if kept != "p" {
				if n := s.Kept(); n != 1 {
					t.Errorf("%d are kept", n)
				}
				return
			}
			patience.WaitFor(t, "all is consumed", func() bool { return pending(s, ownName) == 0 })
			w.set(func() {
				if len(w.fired) != 1 {
					t.Errorf("fired %v", w.fired)
				}
			})
		})
	}
}

// One record that fails must not end the others of its batch.
func TestBatchWithOneThatFails(t *testing.T) {
	w := newWorld(t)
	w.standing["away"] = Unknown
	s := w.open("p")
	bad, good := record(t, "m1"), record(t, "m2")
	bad.To, good.To = "away", "p"
	for range 2 {
		if err := s.acceptBatch(t.Context(), "a", []spool.Record{bad, good}); !errors.Is(err, errUnknown) {
			t.Fatalf("error %v", err)
		}
	}
	patience.WaitFor(t, "all is consumed", func() bool { return pending(s, ownName) == 0 })
	w.set(func() {
		if len(w.fired) != 1 {
			t.Errorf("fired %v", w.fired)
		}
	})
}

// What the local master took while another node gave up waiting, or what was deferred to it, is not given to it twice.
func TestDeferredAndHandedOver(t *testing.T) {
	for name, first := range map[string]func(*Service, Request){
		"deferred": func(s *Service, r Request) { must(t, func(f func([]byte, error)) { s.Defer(r, f) }) },
		"answered": func(s *Service, r Request) { s.Answered(r.Minion, r.Load) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.open("p", func(c *Config) { c.Mode = Mode{Reasons: map[string]string{"_return": "off"}} })
			r := request(t, "m1")
			first(s, r)
			rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: "p", Load: r.Load}
			require.NoError(t, s.acceptBatch(t.Context(), "a", []spool.Record{rec}))
			patience.WaitFor(t, "the master", func() bool { return pending(s, pythonName) == 0 })
			want := map[string]int{"deferred": 1, "answered": 0}[name]
			w.set(func() {
				if len(w.pyGot) != want {
					t.Errorf("the master got %v", w.pyGot)
				}
			})
		})
	}
}

// What a peer hands over and this node does not take natively is for its master: the minion has been answered.
func TestBatchForTheMaster(t *testing.T) {
	w := newWorld(t)
	s := w.open("p", func(c *Config) { c.Mode = Mode{Reasons: map[string]string{"_return": "off"}} })
	rec := record(t, "m1")
	rec.To = "p"
	require.NoError(t, s.acceptBatch(t.Context(), "a", []spool.Record{rec}))
	patience.WaitFor(t, "the master", func() bool { w.mu.Lock(); defer w.mu.Unlock(); return len(w.pyGot) == 1 })
}

// A minion has been answered for what a peer hands over, so what this version cannot read is not dropped.
func TestBatchOfAnotherVersion(t *testing.T) {
	w := newWorld(t)
	s := w.open("p")
	unreadable := record(t, "m1")
	unreadable.Load, unreadable.To = []byte("\xc1"), "p"
	require.NoError(t, s.acceptBatch(t.Context(), "a", []spool.Record{unreadable}))
	list, _ := s.Unanswered()
	if len(list) != 1 || list[0].Minion != "m1" || !list[0].Next.IsZero() {
		t.Errorf("put aside %+v", list)
	}
}

// A signed return of a queued job has the id that its minion has cut; the job's own goes along with it, also to another
// node.
func TestSignedReturnOfAQueuedJob(t *testing.T) {
	const whole = jid + "_4711"
	for name, give := range map[string]func(*Service, Request) error{
		"taken": func(s *Service, r Request) error {
			_, err := take(t, func(f func([]byte, error)) { s.Take(r, f) })
			return err
		},
		"handed over": func(s *Service, r Request) error {
			rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: "p", Load: r.Load}
			return s.acceptBatch(t.Context(), "a", []spool.Record{rec})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.open("p")
			r := request(t, "m1")
			r.JID = whole
			require.NoError(t, give(s, r))
			patience.WaitFor(t, "all is consumed", func() bool { return pending(s, ownName) == 0 })
			if !s.cache().Has(whole, "m1") || s.cache().Has(jid, "m1") {
				t.Error("it is not under the job's id, or under the cut one")
			}
			w.set(func() {
				if len(w.fired) != 1 || !strings.Contains(w.fired[0], whole) {
					t.Errorf("fired %v", w.fired)
				}
			})
		})
	}
}
