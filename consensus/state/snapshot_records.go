package state

import (
	"errors"
	"fmt"
)

// recordReader finds how to take in a snapshot record, nil when unknown.
func recordReader(t string) func(*snapshotReader, []byte) error {
	switch t {
	case recHeader:
		return (*snapshotReader).readHeader
	case recIdentity:
		return readRec((*snapshotReader).readIdentity)
	case recMember:
		return readRec((*snapshotReader).readMember)
	case recKey:
		return readRec((*snapshotReader).readKey)
	case recTombstone:
		return readRec((*snapshotReader).readTombstone)
	case recDenied:
		return readRec((*snapshotReader).deniedKey)
	case recEpoch:
		return readRec((*snapshotReader).readEpoch)
	case recSeed:
		return readRec((*snapshotReader).readSeed)
	case recSeeds:
		return readRec((*snapshotReader).seedsAfter)
	case recGossip:
		return readRec((*snapshotReader).gossipKey)
	case recRequest:
		return readRec((*snapshotReader).readRequest)
	case recPast:
		return readRec((*snapshotReader).readPast)
	case recRoots:
		return readRec((*snapshotReader).readRoots)
	case recRevision:
		return readRec((*snapshotReader).rootsRevision)
	case recToken:
		return readRec((*snapshotReader).readToken)
	case recJoinSecret:
		return readRec((*snapshotReader).joinSecret)
	case recNext:
		return readRec((*snapshotReader).identityChange)
	case recLevel:
		return readRec((*snapshotReader).readLevel)
	case recEnd:
		return readRec((*snapshotReader).readEnd)
	}
	return nil
}

// readRec decodes the body and marks what take finds wrong as malformed.
func readRec[B any](take func(*snapshotReader, B) error) func(*snapshotReader, []byte) error {
	return func(r *snapshotReader, b []byte) error {
		var body B
		if err := decodeStrict(b, &body); err != nil {
			return err
		}
		if err := take(r, body); err != nil {
			if errors.Is(err, ErrMalformed) {
				return err
			}
			return fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return nil
	}
}

func (r *snapshotReader) readHeader(b []byte) error {
	var h wireHeader
	if err := decodeStrict(b, &h); err != nil {
		return err
	}
	if max(h.RevokedRev, h.DeniedRev, h.TombFloor) > h.Rev || h.RequestFloor > h.RequestSeq {
		return fmt.Errorf("%w: counters disagree", ErrMalformed)
	}
	r.revs = map[uint64]struct{}{}
	r.d.index = h.Index
	r.d.rev, r.d.revokedRev, r.d.deniedRev, r.d.tombFloor = h.Rev, h.RevokedRev, h.DeniedRev, h.TombFloor
	r.d.requests.seq, r.d.requests.floor = h.RequestSeq, h.RequestFloor
	return nil
}

func (r *snapshotReader) readPast(p wirePast) error {
	if p == (wirePast{}) || r.d.removedRev != 0 || r.d.generation != 0 || p.RemovedRev > r.d.rev {
		return errors.New("past duplicate, empty or from the future")
	}
	r.d.removedRev, r.d.generation = p.RemovedRev, p.Generation
	return nil
}

func (r *snapshotReader) readIdentity(i Identity) error {
	if r.d.isInitialized() || i.ClusterID == "" || i.UUID == "" {
		return errors.New("identity duplicate or empty")
	}
	r.d.ident = i
	return errors.Join(validText("cluster id", i.ClusterID, MaxID), validText("uuid", i.UUID, MaxID),
		validText("identity fingerprint", i.IdentityFP, MaxText))
}

func (r *snapshotReader) readMember(m Member) error {
	if _, dup := r.d.members[m.ID]; dup || len(r.d.members) >= MaxMembers || m.JoinedRev > m.Rev {
		return errors.New("member duplicate, too many or from the future")
	}
	if err := errors.Join(validMember(m), m.Audit.validate(), r.checkRevision(m.Rev, false),
		r.d.checkUnique(m.ID, m.Addr, m.Fingerprint)); err != nil {
		return err
	}
	r.d.members[m.ID] = m
	return nil
}

func (r *snapshotReader) readKey(k Key) error {
	switch k.State {
	case KeyPending, KeyAccepted, KeyRejected:
	default:
		return errors.New("unknown key state")
	}
	if r.d.keyRev(k.ID) != 0 || r.d.keys.len() >= MaxKeys || k.Again > k.Rev {
		return errors.New("key duplicate, too many or from the future")
	}
	err := errors.Join(ValidMinionID(k.ID), validPub(k.Pub), k.Audit.validate(), r.checkRevision(k.Rev, true))
	if err != nil {
		return err
	}
	r.d.putKey(k)
	return nil
}

func (r *snapshotReader) readTombstone(t Tombstone) error {
	if r.d.keyRev(t.ID) != 0 || r.d.tombs.len() >= MaxTombstones {
		return errors.New("duplicate tombstone, or too many")
	}
	if err := errors.Join(ValidMinionID(t.ID), t.Audit.validate(), r.checkRevision(t.Rev, true)); err != nil {
		return err
	}
	r.d.putTomb(t)
	return nil
}

func (r *snapshotReader) deniedKey(k DeniedKey) error {
	if r.d.denied.get(k.ID) != nil || r.d.denied.len() >= MaxDenied {
		return errors.New("duplicate denied key, or too many")
	}
	err := errors.Join(ValidMinionID(k.ID), validPub(k.Pub), k.Audit.validate(), r.checkRevision(k.Rev, false))
	if err != nil {
		return err
	}
	r.d.denied.put(k.ID, &k)
	return nil
}

func (r *snapshotReader) readEpoch(w wireEpoch) error {
	e, cur := w.toEpoch(), r.d.epochs.Current
	if e.N == 0 || r.d.epochs.Previous.N != 0 || (cur.N != 0 && e.N != cur.N+1) {
		return errors.New("epochs out of order")
	}
	if err := errors.Join(validEpochKey(e.Key), validText("reason", e.Reason, MaxText), e.Audit.validate(),
		r.checkRevision(e.Rev, false)); err != nil {
		return err
	}
	r.d.epochs = Epochs{Current: e, Previous: cur}
	return nil
}

func (r *snapshotReader) readSeed(w wireSeed) error {
	s := NewSecret(w.Seed)
	if r.d.seeds.Current.N != 0 {
		return errors.New("seed twice")
	}
	r.d.seeds.Current = Seed{N: 1, Key: s}
	return validSeed(s)
}

func (r *snapshotReader) gossipKey(w wireGossipKey) error {
	g := r.d.gossip
	if w.N == 0 || len(g) >= MaxGossipKeys || (len(g) > 0 && g[len(g)-1].N != w.N+1) {
		return errors.New("gossip keys out of order or too many")
	}
	k := GossipKey{w.N, NewSecret(w.Key), w.Rev, w.Audit}
	r.d.gossip = append(g, k)
	return errors.Join(validGossipKey(k.Key), w.Audit.validate(), r.checkRevision(w.Rev, false))
}

func (r *snapshotReader) readRequest(q requestRecord) error {
	l := &r.d.requests
	switch {
	case q.ID == "", len(q.ID) > MaxID, len(q.Results) > MaxCommands:
		return errors.New("request out of bounds")
	case q.Seq <= l.floor, q.Seq > l.seq, l.byID.get(q.ID) != nil, l.bySeq.get(q.Seq) != nil:
		return errors.New("request out of order")
	case l.byID.len() >= dedupeRequests, l.results+len(q.Results) > dedupeResults:
		return errors.New("too many requests")
	}
	l.restoreRecord(q)
	return nil
}

func (r *snapshotReader) readEnd(e wireEnd) error {
	if e.Records != r.n {
		return fmt.Errorf("%d records announced, %d read", e.Records, r.n)
	}
	r.ended = true
	return nil
}
