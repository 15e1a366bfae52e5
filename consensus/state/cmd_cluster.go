package state

import (
	"errors"
	"fmt"

	"saltclusterd/gossip/node"
)

// Init ("cluster.init") gives birth to a cluster: its names, its first member
// and its first secrets. It takes effect once; the same UUID again is a no-op,
// another UUID a conflict.
type Init struct {
	Identity
	Founder     Member // ID, Addr, Fingerprint, Weight, Witness count
	EpochKey    Secret // Salt's 76-character text form
	SessionSeed Secret
	GossipKey   Secret
	Audit
}

// Type implements Command.
func (Init) Type() string { return "cluster.init" }

// Validate implements Command.
func (c Init) Validate() error {
	if c.ClusterID == "" || c.UUID == "" {
		return errors.New("cluster id and uuid must be set")
	}
	return errors.Join(
		validText("cluster id", c.ClusterID, MaxID),
		validText("uuid", c.UUID, MaxID),
		validText("identity fingerprint", c.IdentityFP, MaxText),
		validMember(c.Founder),
		validEpochKey(c.EpochKey),
		validSeed(c.SessionSeed),
		validGossipKey(c.GossipKey),
		c.Audit.validate(),
	)
}

func (c Init) applyTo(d *data) Result {
	if d.isInitialized() {
		if d.ident == c.Identity {
			return Result{}
		}
		return refuse(Conflict, 0, "this state belongs to cluster %s (%s)", d.ident.ClusterID, d.ident.UUID)
	}
	rev := d.nextRevision()
	d.ident = c.Identity
	m := c.Founder
	m.NonVoter, m.Draining = false, false
	m.JoinedRev, m.Rev, m.Audit = rev, rev, c.Audit
	d.members = map[node.ID]Member{m.ID: m}
	d.epochs.Current = Epoch{N: 1, Key: c.EpochKey, Reason: "birth", Rev: rev, Audit: c.Audit}
	d.seeds = Seeds{Current: Seed{N: 1, Key: c.SessionSeed}}
	d.gossip = []GossipKey{{N: 1, Key: c.GossipKey, Rev: rev, Audit: c.Audit}}
	return Result{Rev: rev}
}

func validMember(m Member) error {
	if m.Weight < 1 || m.Weight > MaxWeight {
		return fmt.Errorf("weight %d is not in 1..%d", m.Weight, MaxWeight)
	}
	return errors.Join(validNode(m.ID), validAddr(m.Addr), validFingerprint(m.Fingerprint))
}
