package state

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// A snapshot is a sequence of JSON lines: a header, one record per fact, and
// an end record which tells how many there were, so that a torn file is not
// taken for a small state. Record types are never reused; a reader skips the
// ones it does not know if they are marked ignorable, and refuses otherwise.
const (
	recHeader     = "saltclusterd.state"
	recIdentity   = "identity"
	recMember     = "member"
	recKey        = "key"
	recTombstone  = "tombstone"
	recDenied     = "denied"
	recEpoch      = "epoch" // in order: previous, current
	recSeed       = "seed"
	recSeeds      = "seeds"  // after recSeed
	recGossip     = "gossip" // in order: newest first
	recRequest    = "request"
	recPast       = "past"
	recRoots      = "roots"
	recRevision   = "roots.revision" // in order: oldest first, after recRoots
	recToken      = "join.token"     // in order: oldest first
	recJoinSecret = "join.secret"    // in order: former, current
	recLevel      = "level"
	recNext       = "identity.change"
	recEnd        = "end"
)

// wireHeader holds the counters.
type wireHeader struct {
	Index        uint64 `json:"index"`
	Rev          uint64 `json:"rev"`
	RevokedRev   uint64 `json:"revoked_rev,omitempty"`
	DeniedRev    uint64 `json:"denied_rev,omitempty"`
	TombFloor    uint64 `json:"tombstone_floor,omitempty"`
	RequestSeq   uint64 `json:"request_seq,omitempty"`
	RequestFloor uint64 `json:"request_floor,omitempty"`
}

// wirePast is there only when something of it is.
type wirePast struct {
	RemovedRev uint64 `json:"removed_rev,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
}

type wireEnd struct {
	Records int `json:"records"`
}

// WriteSnapshot writes the whole view, secrets included. Equal states give
// equal bytes.
func (v View) WriteSnapshot(w io.Writer) error {
	sw := &snapshotWriter{w: bufio.NewWriterSize(w, 64<<10)}
	sw.enc = json.NewEncoder(sw.w)
	sw.enc.SetEscapeHTML(false)
	sw.writeState(v.get())
	sw.writeRecord(recEnd, wireEnd{sw.n})
	if sw.err != nil {
		return fmt.Errorf("write snapshot: %w", sw.err)
	}
	if err := sw.w.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// snapshotWriter writes records until the first error.
type snapshotWriter struct {
	w   *bufio.Writer
	enc *json.Encoder
	n   int
	err error
}

func (w *snapshotWriter) writeRecord(t string, body any) {
	if w.err != nil {
		return
	}
	d, err := json.Marshal(body)
	if err == nil {
		err = w.enc.Encode(record{V: version, T: t, D: d})
	}
	w.err = err
	w.n++
}

func (w *snapshotWriter) writeState(d *data) {
	w.writeRecord(recHeader, wireHeader{
		Index: d.index, Rev: d.rev, RevokedRev: d.revokedRev, DeniedRev: d.deniedRev, TombFloor: d.tombFloor,
		RequestSeq: d.requests.seq, RequestFloor: d.requests.floor,
	})
	if past := (wirePast{d.removedRev, d.generation}); past != (wirePast{}) {
		w.writeRecord(recPast, past)
	}
	if d.isInitialized() {
		w.writeRecord(recIdentity, d.ident)
		w.writeRecord(recSeed, wireSeed{d.seeds.Current.Key.Bytes()})
		if d.seeds.Previous.N != 0 {
			w.writeRecord(recSeeds, d.seeds.toWire())
		}
		if d.epochs.Previous.N != 0 {
			w.writeRecord(recEpoch, d.epochs.Previous.wireEpoch())
		}
		w.writeRecord(recEpoch, d.epochs.Current.wireEpoch())
	}
	if d.change.Stage != NoIdentity {
		w.writeRecord(recNext, d.change)
	}
	if d.level > 0 {
		w.writeRecord(recLevel, wireLevel{d.level})
	}
	for _, g := range d.gossip {
		w.writeRecord(recGossip, wireGossipKey{g.N, g.Key.Bytes(), g.Rev, g.Audit})
	}
	for _, m := range sortedMembers(d.members) {
		w.writeRecord(recMember, m)
	}
	w.writeRoots(d.roots)
	w.writeJoins(d)
	d.keys.ascend("", func(_ string, k *Key) bool { w.writeRecord(recKey, k); return w.err == nil })
	d.tombs.ascend("", func(_ string, t *Tombstone) bool { w.writeRecord(recTombstone, t); return w.err == nil })
	d.denied.ascend("", func(_ string, k *DeniedKey) bool { w.writeRecord(recDenied, k); return w.err == nil })
	d.requests.bySeq.ascend(0, func(_ uint64, r *requestRecord) bool { w.writeRecord(recRequest, r); return w.err == nil })
}
