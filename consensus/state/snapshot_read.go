package state

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"saltclusterd/gossip/node"
)

// ReadSnapshot reads what WriteSnapshot wrote. It refuses what is torn
// (ErrMalformed), what no sequence of commands could have made (ErrMalformed)
// and what it does not know and may not skip (ErrUnsupported).
func ReadSnapshot(r io.Reader) (*State, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), MaxRecord)
	sr := &snapshotReader{d: newData()}
	sr.d.members = map[node.ID]Member{}
	for sc.Scan() {
		if err := sr.readRecord(sc.Bytes()); err != nil {
			return nil, fmt.Errorf("read snapshot: record %d: %w", sr.n, err)
		}
		sr.n++
	}
	if err := sc.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("%w: record of more than %d bytes", ErrMalformed, MaxRecord)
		}
		return nil, fmt.Errorf("read snapshot: record %d: %w", sr.n, err)
	}
	if err := sr.checkComplete(); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	s := &State{}
	s.cur.Store(sr.d)
	return s, nil
}

type snapshotReader struct {
	d     *data
	n     int // records read
	ended bool
	revs  map[uint64]struct{} // of keys and tombstones; must be unique
}

func (r *snapshotReader) readRecord(b []byte) error {
	var rec record
	if err := decodeStrict(b, &rec); err != nil {
		return err
	}
	known := recordReader(rec.T)
	switch {
	case r.ended:
		return fmt.Errorf("%w: records after the end", ErrMalformed)
	case (r.n == 0) != (rec.T == recHeader):
		return fmt.Errorf("%w: not a snapshot of saltclusterd's state", ErrMalformed)
	case known == nil || rec.V > version:
		if rec.Ignorable {
			return nil
		}
		return fmt.Errorf("%.40q version %d: %w", rec.T, rec.V, ErrUnsupported)
	case rec.V < 1:
		return fmt.Errorf("%w: record without a version", ErrMalformed)
	}
	if err := known(r, rec.D); err != nil {
		return fmt.Errorf("%s: %w", rec.T, err)
	}
	return nil
}

func (r *snapshotReader) checkComplete() error {
	d := r.d
	switch {
	case !r.ended:
		return fmt.Errorf("%w: cut short after %d records", ErrMalformed, r.n)
	case !d.isInitialized():
		if r.n > 2 && (len(d.members) > 0 || d.keys.len()+d.tombs.len()+d.denied.len() > 0 || len(d.gossip) > 0 ||
			d.epochs.Current.N > 0 || d.roots.last > 0 ||
			len(d.tokens) > 0 || d.level > 0 || d.secrets.Current.N > 0 || d.secrets.Overlap) {
			return fmt.Errorf("%w: facts without an identity", ErrMalformed)
		}
		d.members = nil
	case d.secrets.Overlap && d.secrets.Current.N == 0:
		return fmt.Errorf("%w: the cluster secret in force is missing", ErrMalformed)
	case !d.roots.isComplete():
		return fmt.Errorf("%w: the trees in force are missing", ErrMalformed)
	case len(d.members) == 0, len(d.gossip) == 0, d.epochs.Current.N == 0, d.seeds.Current.N == 0:
		return fmt.Errorf("%w: members, epoch, seed or gossip key missing", ErrMalformed)
	}
	return nil
}

// checkRevision checks a revision and, for keys and tombstones, that it is used once.
func (r *snapshotReader) checkRevision(rev uint64, unique bool) error {
	if rev == 0 || rev > r.d.rev {
		return fmt.Errorf("%w: revision %d is not in 1..%d", ErrMalformed, rev, r.d.rev)
	}
	if !unique {
		return nil
	}
	if _, dup := r.revs[rev]; dup {
		return fmt.Errorf("%w: revision %d twice", ErrMalformed, rev)
	}
	r.revs[rev] = struct{}{}
	return nil
}
