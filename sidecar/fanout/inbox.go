package fanout

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"

	"golang.org/x/sync/semaphore"
)

// sink is what the inbox hands accepted records to; calls for one origin come in order.
type sink interface {
	// at is before the publication was made, but not long; zero: the origin does not tell, as versions before do not.
	remotePublication(origin node.ID, p Publication, at time.Time)
	remoteSignIn(id string, epoch uint64)
	remoteStart(s late.Start)
	// earlierPublication gives what was published before this node's daemon was restarted, here or elsewhere; at is before
	// that, but not long.
	earlierPublication(p Publication, at time.Time)
	// stoodStill tells that this process did, and its clock with it: what it takes for young may be old.
	stoodStill()
}

// inbox takes the record streams of the peers and lets each record through once.
type inbox struct {
	from  func(context.Context) (node.ID, bool)
	clock *hlc.Clock
	sink  sink
	epoch func() uint64 // in force here
	beats *beats
	ended func(node.ID) time.Time // when the process of a peer's run before was found to have ended; zero: not known
	log   *slog.Logger
	since time.Time // when this node began to take records
	taken time.Time // the same of a process before this one; zero: none

	gate   *semaphore.Weighted // each delivery holds one of deliveries, Freeze holds all
	handed bool                // another process has taken over; guarded by gate

	mu      sync.Mutex
	origins map[node.ID]*origin
}

// origin is how far one peer's records have been taken.
type origin struct {
	mu     sync.Mutex // held while a record is taken: one stream at a time delivers
	run    string
	seq    uint64
	cancel context.CancelFunc // ends the stream in force

	listed atomic.Bool   // all starts of processes that it knew have been heard
	stamp  atomic.Uint64 // of its last heartbeat
	told   atomic.Int64  // everything that happened there until then has been told, in the time of beats; 0: nothing
	heard  atomic.Int64  // when anything came from it last; 0: nothing
	// when its run before was heard last: what that did then may not have been told; 0: there was none
	gap    atomic.Int64
	beatAt atomic.Int64 // when stamp came
}

// findOrigin returns what is known of an origin, nil if nothing is.
func (i *inbox) findOrigin(id node.ID) *origin {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.origins[id]
}

// stampOf is the stamp of the last heartbeat of id.
func (i *inbox) stampOf(id node.ID) uint64 {
	if o := i.findOrigin(id); o != nil {
		return o.stamp.Load()
	}
	return 0
}

// beginStream makes the caller's stream the one in force and returns the position reached in run: unknownPosition when
// this node never heard the origin before. Then the origin begins with what headerAge asks for.
func (i *inbox) beginStream(id node.ID, run string, cancel context.CancelFunc) (*origin, uint64) {
	i.mu.Lock()
	o := i.origins[id]
	if o == nil {
		o = &origin{run: run, seq: unknownPosition}
		i.origins[id] = o
	}
	i.mu.Unlock()
	ended := i.ended(id)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cancel != nil {
		o.cancel()
	}
	o.cancel = cancel
	if o.run != run {
		o.run, o.seq = run, 0
		o.listed.Store(false)
		o.stamp.Store(0)
		o.gap.Store(0)
		if !o.toldAll(i.beats, ended, i.beats.now()) {
			o.gap.Store(o.heard.Load())
		}
	}
	return o, o.seq
}

// toldAll reports whether the run of the origin that was heard last, and is over now, has told everything but its last
// milliseconds: it was in touch then, and ended not long after. ended is when it was found to have; of an earlier run,
// or zero: that is not known.
func (o *origin) toldAll(b *beats, ended, now time.Time) bool {
	heard := b.timeOf(o.heard.Load())
	if ended.Before(heard.Add(-unheard)) {
		ended = now
	}
	return o.heard.Load() > 0 && heard.Sub(b.timeOf(o.told.Load())) <= cutAfter && ended.Sub(heard) <= silentAfter
}

// forgetExcept ends the streams of all nodes but those to keep, and drops what is known of them. The caller must not
// hold Hub.mu: whoever delivers a record holds the origin's mu and may ask the hub.
func (i *inbox) forgetExcept(keep map[node.ID]bool) {
	var gone []*origin
	i.mu.Lock()
	for id, o := range i.origins {
		if !keep[id] {
			gone = append(gone, o)
			delete(i.origins, id)
		}
	}
	i.mu.Unlock()
	for _, o := range gone {
		o.mu.Lock()
		if o.cancel != nil {
			o.cancel()
		}
		o.mu.Unlock()
	}
}

// ServeHTTP takes one stream until it breaks, another replaces it, or the peer is removed.
func (i *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, ok := i.from(r.Context())
	run := r.Header.Get(headerRun)
	if !ok || run == "" || r.Method != http.MethodPost {
		http.Error(w, "not a member", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stop := context.AfterFunc(ctx, func() { r.Body.Close() }) // a replaced stream's read must end
	defer stop()
	o, seq := i.beginStream(id, run, cancel)
	wants, ages := i.beats.now().Sub(i.since), r.Header.Get(headerAges) != ""
	if ages { // then what is older will be seen to be
		wants = MaxAge
		if !o.listed.Load() {
			w.Header().Set(headerStarts, "all")
		}
	}
	w.Header().Set(headerAge, strconv.FormatInt(wants.Microseconds(), 10))
	w.WriteHeader(http.StatusOK)
	err := i.takeRecords(ctx, id, run, o, seq, ages, bufio.NewReaderSize(r.Body, 64<<10), w)
	if !errors.Is(err, io.EOF) && ctx.Err() == nil {
		i.log.Debug("publication stream ended", "node", id, "err", err)
	}
}

// takeRecords reads records and acknowledges them whenever no more are waiting. It returns why the stream ended. A peer
// sends heartbeats all the time; what comes after a silence was sent long ago, and is sent again with its age.
func (i *inbox) takeRecords(ctx context.Context, id node.ID, run string, o *origin, seq uint64, ages bool,
	r *bufio.Reader, w http.ResponseWriter) error {
	flush := http.NewResponseController(w)
	ack := func() error {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], seq)
		if _, err := w.Write(b[:]); err != nil {
			return err
		}
		return flush.Flush()
	}
	sent := i.beats.now()         // what is read now was sent after it; a stream may stand still for seconds
	if err := ack(); err != nil { // tells the peer where to continue
		return err
	}
	heard := sent
	epoch, age := uint64(0), time.Duration(0)
	for refused := false; ; {
		h, payload, err := readRecord(r)
		if err != nil {
			return err
		}
		now := i.beats.now()
		if now.Sub(heard) > silentAfter { // this process stood still: the peer has given up the stream, and makes a new one
			return errSilent
		}
		heard = now
		o.heard.Store(i.beats.sinceStart(now))
		if err := i.clock.Observe(h.clock); err != nil && !refused {
			refused = true // once per stream: each heartbeat carries it
			i.log.Warn("serial of a peer refused", "node", id, "err", err)
		}
		switch {
		case h.kind == kindEpoch:
			epoch, err = parseEpoch(payload)
		case h.kind == kindAge:
			age, err = parseAge(payload)
		case h.kind == kindHeartbeat:
			if at := i.noteBeat(o, parseBeat(payload), now); at.After(sent) {
				sent = at
			}
		case h.kind == kindStart && h.seq == 0:
			err = i.noteStart(payload, now)
		case h.kind == kindEarlier:
			if err = i.awaitEpoch(ctx, id, epoch); err == nil {
				err = i.noteEarlier(payload, sent)
			}
		case h.kind == kindPublication:
			err = i.awaitEpoch(ctx, id, epoch)
		}
		if err != nil {
			return err
		}
		if h.seq != 0 {
			made := span{sent.Add(-age), now.Add(-age)}
			if !ages {
				made.from = time.Time{}
			}
			if seq, err = i.deliverRecord(ctx, id, run, o, h, payload, made); err != nil {
				return err
			}
			age = 0
		}
		if r.Buffered() == 0 {
			if err := ack(); err != nil {
				return err
			}
		}
	}
}

// awaitEpoch holds a publication back until this node has the epoch that its origin had: sealed under an older one, it
// could be read with a key that was taken away since. A node has it a moment later, or is behind the cluster. Then the
// origin makes the link anew now and then, and the publication is delivered as long as it is not too old.
func (i *inbox) awaitEpoch(ctx context.Context, id node.ID, epoch uint64) error {
	for said := false; i.epoch() < epoch; said = true {
		if !said {
			i.log.Debug("publication waits for its epoch", "node", id, "epoch", epoch)
		}
		select {
		case <-time.After(epochPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// epochPoll is how often a publication that waits looks for its epoch.
const epochPoll = 10 * time.Millisecond

var errReplaced = errors.New("stream replaced by a newer one")

// unknownPosition is acknowledged by a node that never heard the origin: the origin continues with the records that are
// not older than the node has asked for (headerAge).
const unknownPosition = ^uint64(0)

// span is when a record was made: not before from, not after to.
type span struct{ from, to time.Time }

// stillFor is by how much an origin's time may run away from ours between two heartbeats.
const stillFor = 5 * time.Second

// noteBeat takes a heartbeat, and returns a moment after which it was sent, because the origin had heard of that
// moment.
func (i *inbox) noteBeat(o *origin, b beat, now time.Time) time.Time {
	at := i.beats.sinceStart(now)
	before, beforeAt := o.stamp.Swap(b.stamp), o.beatAt.Swap(at)
	if b.stamp == 0 {
		return time.Time{}
	}
	o.listed.Store(true) // the list stands before the first heartbeat
	if before > 0 && b.stamp > before &&
		time.Duration(b.stamp-before)*time.Microsecond-time.Duration(at-beforeAt) > stillFor {
		i.sink.stoodStill()
	}
	return i.beats.noteAnswered(o, b.echo)
}

// noteStart hands the start of a minion's process on.
func (i *inbox) noteStart(payload []byte, now time.Time) error {
	s, err := parseStart(payload, now)
	if err == nil {
		i.sink.remoteStart(s)
	}
	return err
}

// noteEarlier hands on a publication from before this run of the daemon, which was sent after the moment that sent is.
func (i *inbox) noteEarlier(payload []byte, sent time.Time) error {
	p, at, err := parseEarlier(payload, sent)
	if err == nil {
		i.sink.earlierPublication(p, at)
	}
	return err
}

// deliverRecord hands a record on unless it was taken before, and returns the position reached.
func (i *inbox) deliverRecord(ctx context.Context, id node.ID, run string, o *origin, h header, payload []byte,
	made span) (uint64, error) {
	if !i.waitThaw(ctx) {
		return 0, errReplaced
	}
	defer i.leave()
	o.mu.Lock()
	defer o.mu.Unlock()
	if ctx.Err() != nil || o.run != run {
		return 0, errReplaced
	}
	if h.seq == unknownPosition { // taken, it would make us forget how far this origin is
		return 0, errMalformed
	}
	if h.seq <= o.seq && o.seq != unknownPosition {
		return o.seq, nil
	}
	switch h.kind {
	case kindPublication:
		p, err := parsePublication(payload)
		if err != nil {
			return 0, err
		}
		i.sink.remotePublication(id, p, made.from)
	case kindSignIn:
		minion, epoch, err := parseSignIn(payload)
		if err != nil {
			return 0, err
		}
		i.sink.remoteSignIn(minion, epoch)
	case kindStart:
		if err := i.noteStart(payload, made.to); err != nil {
			return 0, err
		}
	}
	o.seq = h.seq
	return o.seq, nil
}
