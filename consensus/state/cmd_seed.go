package state

import "errors"

// Seed is one generation of what minions' session keys are derived from. N counts from 1, the one a cluster is born
// with. Of that one neither revision nor audit is kept.
type Seed struct {
	N   uint64
	Key Secret
	Rev uint64
	Audit
}

// Seeds are the generation in force and the one before it (N zero: none), with which minions that have not signed in
// since still come.
type Seeds struct{ Current, Previous Seed }

// SeedRotate ("seed.rotate") puts a new session seed in force, and a new AES key with it: this is what makes minions
// sign in, by which they get their new session keys. Expect is the number of the epoch that it replaces; a conflict
// means that another rotation was first.
type SeedRotate struct {
	Expect uint64
	Seed   Secret
	Key    Secret
	Reason string
	Audit
}

// Type implements Command.
func (SeedRotate) Type() string { return "seed.rotate" }

// Validate implements Command.
func (c SeedRotate) Validate() error {
	return errors.Join(validSeed(c.Seed), c.epochRotation().Validate())
}

func (c SeedRotate) epochRotation() EpochRotate {
	return EpochRotate{c.Expect, c.Key, c.Reason, c.Audit}
}

func (c SeedRotate) applyTo(d *data) Result {
	cur := d.seeds.Current
	if !d.isInitialized() || cur.Key.Equal(c.Seed) {
		return refuse(Invalid, d.rev, "the new session seed is the old one")
	}
	r := c.epochRotation().applyTo(d)
	if r.Code == OK {
		d.seeds = Seeds{Current: Seed{N: cur.N + 1, Key: c.Seed, Rev: r.Rev, Audit: c.Audit}, Previous: cur}
	}
	return r
}

// Seeds are the generations of the session seed.
func (v View) Seeds() Seeds { return v.get().seeds }

// SeedDue tells that a member was removed, or the cluster recovered or restored, after the present session seed began,
// so that a node that does not belong any more knows it.
func (v View) SeedDue() bool {
	d := v.get()
	return d.isInitialized() && d.removedRev > d.seeds.Current.Rev
}

type wireSeedRotate struct {
	Expect uint64 `json:"expect"`
	Seed   []byte `json:"seed"`
	Key    string `json:"key"`
	Reason string `json:"reason,omitempty"`
	Audit
}

func (c SeedRotate) toWire() any {
	return wireSeedRotate{c.Expect, c.Seed.Bytes(), c.Key.Text(), c.Reason, c.Audit}
}

func (w wireSeedRotate) toCommand() Command {
	return SeedRotate{w.Expect, NewSecret(w.Seed), SecretText(w.Key), w.Reason, w.Audit}
}

// wireSeeds is the snapshot record beside that of the seed in force, there only when that is not the first.
type wireSeeds struct {
	N            uint64 `json:"n"`
	Rev          uint64 `json:"rev"`
	Previous     []byte `json:"previous"`
	PreviousRev  uint64 `json:"previous_rev,omitempty"`
	PreviousMade Audit  `json:"previous_made"`
	Audit
}

func (s Seeds) toWire() wireSeeds {
	return wireSeeds{s.Current.N, s.Current.Rev, s.Previous.Key.Bytes(), s.Previous.Rev, s.Previous.Audit, s.Current.Audit}
}

// seedsAfter takes the record in.
func (r *snapshotReader) seedsAfter(w wireSeeds) error {
	cur := r.d.seeds.Current
	if cur.N != 1 || r.d.seeds.Previous.N != 0 || w.N < 2 || w.PreviousRev >= w.Rev {
		return errors.New("session seeds duplicate or out of order")
	}
	r.d.seeds = Seeds{
		Current:  Seed{N: w.N, Key: cur.Key, Rev: w.Rev, Audit: w.Audit},
		Previous: Seed{N: w.N - 1, Key: NewSecret(w.Previous), Rev: w.PreviousRev, Audit: w.PreviousMade},
	}
	return errors.Join(validSeed(r.d.seeds.Previous.Key), w.Audit.validate(), w.PreviousMade.validate(),
		r.checkRevision(w.Rev, false))
}
