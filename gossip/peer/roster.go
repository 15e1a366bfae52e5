package peer

import (
	"net/netip"

	"saltclusterd/gossip/node"
)

// Roster says who belongs to the cluster. It is read live and from many goroutines, also while the port's lock is
// held: an implementation must not call the port, and must answer from memory.
type Roster interface {
	// Lookup returns the member of that id.
	Lookup(id node.ID) (node.Entry, bool)
	// ByFingerprint returns the member to which a certificate belongs.
	ByFingerprint(fp node.Fingerprint) (node.ID, bool)
	// Entries returns all members, this node included, in any order. The slice is the caller's.
	Entries() []node.Entry
}

// isMember reports whether the node itself is on the roster with the certificate it uses, or one that it has just
// replaced.
func isMember(r Roster, i *Identity) bool {
	e, ok := r.Lookup(i.id)
	return ok && i.Knows(e.Fingerprint)
}

// hasAddr reports whether a member advertises this host address.
func hasAddr(r Roster, addr netip.Addr) bool {
	for _, e := range r.Entries() {
		if e.Addr.Addr() == addr {
			return true
		}
	}
	return false
}
