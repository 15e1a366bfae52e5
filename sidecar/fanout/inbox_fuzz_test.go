package fanout

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
)

// bin takes what an inbox lets through.
type bin struct {
	t     *testing.T
	bytes int
}

func (b *bin) remotePublication(_ node.ID, p Publication, at time.Time) {
	if at.After(time.Now()) {
		b.t.Errorf("made at %s", at)
	}
	b.bytes += len(p.Plain)
	for _, topic := range p.Topics {
		b.bytes += len(topic)
	}
}

func (b *bin) remoteSignIn(id string, _ uint64) {
	if id == "" || len(id) > maxMinionID {
		b.t.Errorf("a sign-in of %d bytes", len(id))
	}
	b.bytes += len(id)
}

func (b *bin) stoodStill() {}

func (b *bin) remoteStart(s late.Start) {
	if s.ID == "" || len(s.ID) > maxMinionID || s.At.After(time.Now()) {
		b.t.Errorf("start of %+v", s)
	}
}

func (b *bin) earlierPublication(_ Publication, at time.Time) { // each time a link is made: it is known by its job's id
	if at.After(time.Now()) {
		b.t.Errorf("made at %s", at)
	}
}

// FuzzInbox is everything a member can say in its stream of publications, twice: the second time nothing of it is new.
func FuzzInbox(f *testing.F) {
	pub, err := appendPublication(nil, Publication{Plain: []byte("\x80"), Topics: []string{"broadcast"}})
	require.NoError(f, err)
	stream := appendRecord(nil, header{kind: kindHeartbeat, clock: 5}, nil)
	stream = appendRecord(stream, header{kind: kindPublication, seq: 1, clock: 6}, pub)
	stream = appendRecord(stream, header{kind: kindSignIn, seq: 2, clock: 7}, appendSignIn(nil, "web1", 3))
	f.Add(stream, "run")
	start := appendStart(nil, late.Start{ID: "web1", Process: 7, At: time.Now().Add(-time.Second)}, time.Now())
	f.Add(appendRecord(appendRecord(nil, header{kind: kindStart}, start), header{kind: kindStart, seq: 1}, start), "run")
	earlier, err := appendEarlier(nil, late.Publication{Plain: []byte("\x80"), At: time.Now().Add(-time.Second)},
		time.Now())
	require.NoError(f, err)
	f.Add(appendRecord(nil, header{kind: kindEarlier}, earlier), "run")
	aged := appendRecord(nil, header{kind: kindAge}, appendAge(nil, time.Minute))
	aged = appendRecord(aged, header{kind: kindHeartbeat}, appendBeat(nil, beat{1, 2}))
	f.Add(appendRecord(aged, header{kind: kindPublication, seq: 1, clock: 6}, pub), "run")
	f.Add(appendRecord(nil, header{kind: 9, seq: 1 << 63, clock: 1 << 62}, []byte("of a later version")), "run")
	f.Add(stream[:len(stream)-1], "")
	f.Add(appendRecord(appendEpoch(nil, 5, 7), header{kind: kindPublication, seq: 1, clock: 6}, pub), "run")
	f.Fuzz(func(t *testing.T, in []byte, run string) {
		sink := &bin{t: t}
		beats := newBeats(time.Now)
		i := &inbox{
			gate:  newGate(),
			beats: &beats, ended: neverEnded,
			from:  func(context.Context) (node.ID, bool) { return "b", true },
			epoch: func() uint64 { return math.MaxUint64 },
			clock: hlc.New(time.Now, 0), sink: sink, log: slog.New(slog.DiscardHandler), since: time.Now(),
			origins: map[node.ID]*origin{},
		}
		taken := 0
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, Path, bytes.NewReader(in))
			r.Header.Set(headerRun, run)
			w := httptest.NewRecorder()
			i.ServeHTTP(w, r)
			if w.Code == http.StatusOK && (w.Body.Len() == 0 || w.Body.Len()%8 != 0) {
				t.Fatalf("acknowledged with %d bytes", w.Body.Len())
			}
			if taken > 0 && sink.bytes != taken {
				t.Fatalf("%d bytes were taken at first, %d after the same again", taken, sink.bytes)
			}
			taken = sink.bytes
		}
		if taken > len(in) {
			t.Fatalf("%d bytes out of %d", taken, len(in))
		}
	})
}

// FuzzAcks is what the other end of the stream can answer.
func FuzzAcks(f *testing.F) {
	f.Add("1500", []byte{0, 0, 0, 0, 0, 0, 0, 9})
	f.Add("-1", bytes.Repeat([]byte{0xff}, 8))
	f.Add("0", []byte{0x80, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe})
	f.Add("9223372036854775807", []byte("short"))
	f.Fuzz(func(t *testing.T, text string, in []byte) {
		h := http.Header{}
		h.Set(headerAge, text)
		if d := peerAge(h); d < 0 || d > MaxAge {
			t.Errorf("%q is %s", text, d)
		}
		o := newOutbox(1000, 1<<20, time.Minute, time.Now)
		for range 3 {
			o.addRecord(kindHeartbeat, 0, nil, nil)
		}
		r := bytes.NewReader(in)
		for n := 0; ; n++ {
			seq, err := readAck(r)
			if recs, _, _ := o.recordsAfter(seq, make([]record, 0, 8)); err == nil && len(recs) > 3 {
				t.Errorf("%d records after %d", len(recs), seq)
			}
			if err != nil {
				if n != len(in)/8 {
					t.Errorf("%d acknowledgements in %d bytes", n, len(in))
				}
				return
			}
		}
	})
}
