package fanout

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/late"
)

const (
	// Path is where a node takes the record stream of a peer, on its peer port.
	Path = "/v1/publications"
	// headerRun names the run of the origin's daemon, within which sequence numbers mean something.
	headerRun = "Scd-Run"
	// headerAge tells the origin how many microseconds old the records may be that the receiver has use for: those since
	// it takes records, or up to MaxAge where the origin sends the age of each (headerAges).
	headerAge = "Scd-Age"
	// headerAges tells the receiver that the origin says of each record how old it is.
	headerAges = "Scd-Ages"
	// headerStarts asks the origin for all starts of minions' processes that it knows, and for the publications of the
	// receiver's master.
	headerStarts = "Scd-Starts"

	// heartbeatEvery is well below lateFrom: what comes from a peer is taken for as old as the last heartbeat of this
	// node that the peer had heard, which is up to two of these.
	heartbeatEvery = 500 * time.Millisecond
	// silentAfter is how long a link may go without an acknowledgement of its heartbeats before it is made anew.
	silentAfter = 5 * time.Second
	minBackoff  = 50 * time.Millisecond
	maxBackoff  = 2 * time.Second
	batchSize   = 64
)

var (
	errSilent = errors.New("peer acknowledges nothing")
	errDirect = errors.New("peer is reached directly again")
)

// Ways says how peers are reached.
type Ways interface {
	// Suspect says that a peer does not answer: from now on it is reached through another one, if there is one.
	Suspect(node.ID)
	// Indirect reports whether a peer is reached through another one.
	Indirect(node.ID) bool
}

// direct is Ways where each peer is reached directly or not at all.
type direct struct{}

func (direct) Suspect(node.ID)       {}
func (direct) Indirect(node.ID) bool { return false }

// link carries this node's records to one peer, from the peer's last acknowledged one on.
type link struct {
	peer    node.ID
	run     string
	client  *http.Client
	out     *outbox
	clock   *hlc.Clock
	log     *slog.Logger
	metrics *metrics
	beat    func() beat               // what a heartbeat says now
	now     <-chan struct{}           // asks for a heartbeat
	starts  func() []late.Start       // all that are known
	kept    func() []late.Publication // of the last minute, but what out has
	epoch   func() []byte             // a record of that in force: none of kept was published under a later one
	ways    Ways
	dialled func(error) // how an attempt to make the link ended; nil: it is there
}

// keepOpen holds the link until ctx ends, redialling with backoff.
func (l *link) keepOpen(ctx context.Context) {
	l.metrics.countLost(string(l.peer), 0) // a rule about an increase sees the first one only where there was a zero
	pause := backoff.Backoff{Min: minBackoff, Max: maxBackoff}
	for ctx.Err() == nil {
		began := time.Now()
		err := l.runOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxBackoff {
			pause.Reset()
		}
		if errors.Is(err, errSilent) {
			l.ways.Suspect(l.peer)
		}
		l.log.Debug("publication link lost", "node", l.peer, "err", err)
		pause.Wait(ctx)
	}
}

// runOnce makes the link and feeds it until it breaks.
func (l *link) runOnce(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	alive := time.AfterFunc(silentAfter, func() { cancel(errSilent) })
	defer alive.Stop()
	asked := l.out.now()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { asked = l.out.now() }}
	body, feed := io.Pipe()
	defer body.Close()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(l.peer)+Path, body)
	if err != nil {
		return err
	}
	req.Header.Set(headerRun, l.run)
	req.Header.Set(headerAges, "1")
	indirect := l.ways.Indirect(l.peer) // and so is this link, as long as it lasts
	resp, err := l.client.Do(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	l.dialled(err)
	if err != nil {
		return contextCause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("peer answered %s", resp.Status)
	}
	acks := bufio.NewReaderSize(resp.Body, 512)
	acked, err := readAck(acks)
	if err != nil {
		return fmt.Errorf("read position: %w", contextCause(ctx, err))
	}
	if acked == unknownPosition {
		acked = l.out.seqBefore(asked.Add(-peerAge(resp.Header)))
	}
	done := make(chan struct{})
	go func() { // ends when the response body is closed
		defer close(done)
		for {
			if _, err := readAck(acks); err != nil {
				cancel(err)
				return
			}
			alive.Reset(silentAfter)
		}
	}()
	over := func() bool { return indirect && !l.ways.Indirect(l.peer) }
	err = l.feedPeer(ctx, feed, acked, resp.Header.Get(headerStarts) != "", over)
	feed.CloseWithError(err)
	cancel(err)
	resp.Body.Close()
	<-done
	return err
}

// peerAge is for how long the peer has been taking records: what is older is not news to its minions.
func peerAge(h http.Header) time.Duration {
	us, err := strconv.ParseInt(h.Get(headerAge), 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(min(max(us, 0), MaxAge.Microseconds())) * time.Microsecond
}

// feedPeer writes records after seq, and heartbeats, until ctx ends or over says that there is a better way; before
// them all starts of processes, if the peer wants them or has missed some.
func (l *link) feedPeer(ctx context.Context, pipe io.Writer, seq uint64, starts bool, over func() bool) error {
	w := bufio.NewWriterSize(pipe, 32<<10)
	beat := time.NewTimer(backoff.Align(heartbeatEvery))
	defer beat.Stop()
	buf := make([]record, 0, batchSize)
	for due := false; ; {
		b := l.beat() // before the look at the records: it says that all until then have been sent
		recs, missed, more := l.out.recordsAfter(seq, buf)
		if missed > 0 {
			l.metrics.countLost(string(l.peer), missed)
			l.log.Warn("publications not delivered to a peer in time", "node", l.peer, "count", missed)
			seq += missed
			starts = true
		}
		if starts {
			if err := l.writeStarts(w); err != nil {
				return contextCause(ctx, err)
			}
			starts = false
		}
		for _, r := range recs {
			if err := l.writeAge(w, r); err != nil {
				return contextCause(ctx, err)
			}
			if _, err := w.Write(r.buf); err != nil {
				return contextCause(ctx, err)
			}
			seq = r.seq
		}
		if due && len(recs) < cap(buf) {
			due = false
			if _, err := w.Write(appendRecord(nil, header{kind: kindHeartbeat, clock: l.clock.Last()},
				appendBeat(nil, b))); err != nil {
				return contextCause(ctx, err)
			}
		}
		if err := w.Flush(); err != nil {
			return contextCause(ctx, err)
		}
		if len(recs) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-more:
		case <-l.now:
			due = true
		case <-beat.C:
			if over() {
				return errDirect
			}
			beat.Reset(backoff.Align(heartbeatEvery))
			due = true
		}
	}
}

// writeStarts writes all starts of processes that are known, and then what was published in the last minute, by
// whomever: after a restart the peer gives that to minions which were between two connections, and must know by then
// which of them have started since. Who published it may have been restarted before, and have it from here only.
func (l *link) writeStarts(w io.Writer) error {
	now := l.out.now()
	for _, s := range l.starts() {
		if _, err := w.Write(appendRecord(nil, header{kind: kindStart, clock: l.clock.Last()},
			appendStart(nil, s, now))); err != nil {
			return err
		}
	}
	kept := l.kept()
	if len(kept) > 0 { // the peer gives none of them under an older one
		if _, err := w.Write(l.epoch()); err != nil {
			return err
		}
	}
	for _, p := range kept {
		payload, err := appendEarlier(nil, p, l.out.now())
		if err != nil {
			return err
		}
		if _, err := w.Write(appendRecord(nil, header{kind: kindEarlier, clock: l.clock.Last()}, payload)); err != nil {
			return err
		}
	}
	return nil
}

// saidAge is the age from which on a record's is told.
const saidAge = 100 * time.Millisecond

// writeAge writes how old r is, if it has waited.
func (l *link) writeAge(w io.Writer, r record) error {
	age := l.out.now().Sub(r.at)
	if age < saidAge {
		return nil
	}
	_, err := w.Write(appendRecord(nil, header{kind: kindAge, clock: l.clock.Last()}, appendAge(nil, age)))
	return err
}

// contextCause prefers why the context ended over the write error that its end led to.
func contextCause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// readAck reads one acknowledgement: the sequence number up to which the peer has everything.
func readAck(r io.Reader) (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[:]), nil
}
