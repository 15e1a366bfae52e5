package state

import (
	"slices"

	"saltclusterd/gossip/node"
)

// View is the state at one revision. It does not change; reading needs no
// locks. The zero View is an empty, unborn state.
type View struct{ d *data }

var empty = newData()

func (v View) get() *data {
	if v.d == nil {
		return empty
	}
	return v.d
}

// Initialized tells whether the cluster was born.
func (v View) Initialized() bool { return v.get().isInitialized() }

// Identity names the cluster.
func (v View) Identity() Identity { return v.get().ident }

// Rev is the revision of the last effective change.
func (v View) Rev() uint64 { return v.get().rev }

// Index is the log position of the last entry that was applied.
func (v View) Index() uint64 { return v.get().index }

// Seq counts the requests applied so far; see Request.Since.
func (v View) Seq() uint64 { return v.get().requests.seq }

// Members lists the roster, sorted by id.
func (v View) Members() []Member { return sortedMembers(v.get().members) }

// Member finds a member.
func (v View) Member(id node.ID) (Member, bool) {
	m, ok := v.get().members[id]
	return m, ok
}

// Epochs are the AES epoch in force and the one before.
func (v View) Epochs() Epochs { return v.get().epochs }

// GossipKeys is the gossip keyring, the primary key first.
func (v View) GossipKeys() []GossipKey { return slices.Clone(v.get().gossip) }

// RevokedRev is the revision of the last change that took an accepted key away
// (deleted, rejected, replaced).
func (v View) RevokedRev() uint64 { return v.get().revokedRev }

// RotationDue tells that an accepted key was taken away after the present
// epoch began, so that its owner still knows the AES key in force.
func (v View) RotationDue() bool {
	d := v.get()
	return d.revokedRev > d.epochs.Current.Rev
}

// GossipDue tells that a member was removed after the present gossip key began,
// so that it still knows the key in force.
func (v View) GossipDue() bool {
	d := v.get()
	return len(d.gossip) > 0 && d.removedRev > d.gossip[0].Rev
}

// Generation counts how often the cluster was recovered (see State.Recover). A
// node of an older generation is not a member, whatever it remembers.
func (v View) Generation() uint64 { return v.get().generation }

func sortedMembers(ms map[node.ID]Member) []Member {
	out := make([]Member, 0, len(ms))
	for _, m := range ms {
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Member) int {
		if a.ID < b.ID {
			return -1
		}
		return 1
	})
	return out
}
