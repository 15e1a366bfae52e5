package state

import (
	"errors"
	"fmt"
)

// KeySet ("key.set") creates, changes or deletes the key of a minion.
//
// BaseRev is the precondition: the revision the proposer saw, that is the
// key's, or its tombstone's when it was deleted, or zero when neither exists.
// Anything else is a conflict and changes nothing.
//
// SeenRev is the revision of the state the proposer looked at. It matters only
// with BaseRev zero, after tombstones were pruned: a proposer that had not seen
// the deletions which are forgotten now cannot tell a new key from a deleted one.
type KeySet struct {
	ID      string   `json:"id"`
	State   KeyState `json:"state"`         // KeyDeleted deletes
	Pub     string   `json:"pub,omitempty"` // empty with a state: keep the present one
	BaseRev uint64   `json:"base_rev"`
	SeenRev uint64   `json:"seen_rev,omitempty"`
	Audit
}

// Type implements Command.
func (KeySet) Type() string { return "key.set" }

// Validate implements Command.
func (c KeySet) Validate() error {
	errs := []error{ValidMinionID(c.ID), c.Audit.validate()}
	switch c.State {
	case KeyDeleted, KeyPending, KeyAccepted, KeyRejected:
	default:
		errs = append(errs, errors.New("unknown key state"))
	}
	if c.Pub != "" {
		errs = append(errs, validPub(c.Pub))
	}
	if c.State != KeyDeleted && c.Pub == "" && c.BaseRev == 0 {
		errs = append(errs, errors.New("a new key needs a public key"))
	}
	return errors.Join(errs...)
}

func (c KeySet) applyTo(d *data) Result {
	if cur := d.keyRev(c.ID); cur != c.BaseRev {
		return refuse(Conflict, cur, "key %q is at revision %d, the proposal is based on %d", c.ID, cur, c.BaseRev)
	}
	if c.BaseRev == 0 && c.State != KeyDeleted && c.SeenRev < d.tombFloor {
		return refuse(Conflict, 0, "the proposal was made at revision %d, deletions up to %d are forgotten", c.SeenRev,
			d.tombFloor)
	}
	old := d.keys.get(c.ID)
	if c.State == KeyDeleted {
		return c.removeKey(d, old)
	}
	pub, again := c.Pub, uint64(0)
	if old != nil {
		again = old.Again
		if pub == "" {
			pub = old.Pub
		}
		if old.State == c.State && old.Pub == pub {
			return Result{Rev: old.Rev}
		}
	} else if d.keys.len() >= MaxKeys {
		return refuse(LimitReached, 0, "%d keys, the maximum", d.keys.len())
	}
	if pub == "" {
		return refuse(Invalid, c.BaseRev, "a deleted key comes back with a public key only")
	}
	rev := d.nextRevision()
	if old != nil && old.State == KeyAccepted && (c.State != KeyAccepted || old.Pub != pub) {
		d.revokedRev = rev
	}
	if old == nil && c.BaseRev != 0 && d.level >= LevelLives {
		again = rev
	}
	d.putKey(Key{ID: c.ID, State: c.State, Pub: pub, Rev: rev, Again: again, Audit: c.Audit})
	return Result{Rev: rev}
}

func (c KeySet) removeKey(d *data, old *Key) Result {
	if old == nil {
		return refuse(NotFound, c.BaseRev, "there is no key %q", c.ID)
	}
	rev := d.nextRevision()
	if old.State == KeyAccepted {
		d.revokedRev = rev
	}
	d.putTomb(Tombstone{ID: c.ID, Rev: rev, Audit: c.Audit})
	return Result{Rev: rev}
}

// TombstonesPrune ("tombstones.prune") forgets tombstones that fulfil every
// given bound. At least one bound is needed.
type TombstonesPrune struct {
	UpToRev uint64 `json:"up_to_rev,omitempty"` // revision at most; zero: no bound
	Before  int64  `json:"before,omitempty"`    // recorded before this Unix time in ms; zero: no bound
	Keep    int    `json:"keep,omitempty"`      // the newest Keep stay in any case
	Audit
}

// Type implements Command.
func (TombstonesPrune) Type() string { return "tombstones.prune" }

// Validate implements Command.
func (c TombstonesPrune) Validate() error {
	if c.UpToRev == 0 && c.Before == 0 {
		return errors.New("up_to_rev or before must be set")
	}
	if c.Keep < 0 || c.Keep > MaxTombstones || c.Before < 0 {
		return fmt.Errorf("keep %d or before %d out of bounds", c.Keep, c.Before)
	}
	return c.Audit.validate()
}

func (c TombstonesPrune) applyTo(d *data) Result {
	room := d.tombs.len() - c.Keep
	var gone []*Tombstone
	d.tombRevs.ascend(0, func(rev uint64, t *Tombstone) bool {
		if room <= 0 || (c.UpToRev != 0 && rev > c.UpToRev) {
			return false
		}
		room--
		if c.Before == 0 || t.At < c.Before {
			gone = append(gone, t)
		}
		return true
	})
	if len(gone) == 0 {
		return Result{Rev: d.rev}
	}
	for _, t := range gone {
		d.forgetTomb(t)
	}
	return Result{Rev: d.nextRevision()}
}
