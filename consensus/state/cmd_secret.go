package state

import "errors"

// ReasonRevoked is the reason of an epoch before which a key was taken away. It is for people: what an epoch has to do
// with a removal is told by the revisions (Epoch.Rev, View.RevokedRev).
const ReasonRevoked = "revoked"

// EpochRotate ("epoch.rotate") puts a new AES key in force. Expect is the
// number of the epoch it replaces; a conflict means that another rotation was first.
type EpochRotate struct {
	Expect uint64
	Key    Secret
	Reason string
	Audit
}

// Type implements Command.
func (EpochRotate) Type() string { return "epoch.rotate" }

// Validate implements Command.
func (c EpochRotate) Validate() error {
	return errors.Join(validEpochKey(c.Key), validText("reason", c.Reason, MaxText), c.Audit.validate())
}

func (c EpochRotate) applyTo(d *data) Result {
	cur := d.epochs.Current
	switch {
	case cur.N != c.Expect:
		return refuse(Conflict, cur.Rev, "epoch %d is in force, not %d", cur.N, c.Expect)
	case cur.Key.Equal(c.Key):
		return refuse(Invalid, cur.Rev, "the new epoch key is the old one")
	}
	next := Epoch{N: cur.N + 1, Key: c.Key, Reason: c.Reason, Rev: d.nextRevision(), Audit: c.Audit}
	if d.revokedRev > cur.Rev { // whatever else it was begun for: no later rotation is made for the removal
		next.Reason = ReasonRevoked
	}
	d.epochs = Epochs{Current: next, Previous: cur}
	return Result{Rev: next.Rev}
}

// GossipKeyAdd ("gossip.key") makes a new gossip key the primary one. Expect is
// the number of the primary it replaces. Older ones stay usable for receiving,
// MaxGossipKeys in all, until gossip.drop.
type GossipKeyAdd struct {
	Expect uint64
	Key    Secret
	Audit
}

// Type implements Command.
func (GossipKeyAdd) Type() string { return "gossip.key" }

// Validate implements Command.
func (c GossipKeyAdd) Validate() error {
	return errors.Join(validGossipKey(c.Key), c.Audit.validate())
}

func (c GossipKeyAdd) applyTo(d *data) Result {
	cur := d.gossip[0]
	if cur.N != c.Expect {
		return refuse(Conflict, cur.Rev, "gossip key %d is the primary one, not %d", cur.N, c.Expect)
	}
	for _, k := range d.gossip {
		if k.Key.Equal(c.Key) {
			return refuse(Invalid, k.Rev, "the new gossip key is key %d", k.N)
		}
	}
	next := GossipKey{N: cur.N + 1, Key: c.Key, Rev: d.nextRevision(), Audit: c.Audit}
	ring := append([]GossipKey{next}, d.gossip...)
	d.gossip = ring[:min(len(ring), MaxGossipKeys)]
	return Result{Rev: next.Rev}
}

// GossipKeyDrop ("gossip.drop") forgets all gossip keys older than key N, which
// must be the primary one.
type GossipKeyDrop struct {
	N uint64 `json:"n"`
	Audit
}

// Type implements Command.
func (GossipKeyDrop) Type() string { return "gossip.drop" }

// Validate implements Command.
func (c GossipKeyDrop) Validate() error { return c.Audit.validate() }

func (c GossipKeyDrop) applyTo(d *data) Result {
	cur := d.gossip[0]
	if cur.N != c.N {
		return refuse(Conflict, cur.Rev, "gossip key %d is the primary one, not %d", cur.N, c.N)
	}
	if len(d.gossip) == 1 {
		return Result{Rev: cur.Rev}
	}
	d.gossip = []GossipKey{cur}
	return Result{Rev: d.nextRevision()}
}
