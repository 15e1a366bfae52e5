package daemon

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"saltclusterd/gossip/node"
)

// roster answers who belongs, for every connection on the peer port. It starts from the remembered membership and
// follows consensus; peer.Port and gossip read it live.
type roster struct {
	mu   sync.RWMutex
	byID map[node.ID]node.Entry
	byFP map[node.Fingerprint]node.ID
}

func newRoster() *roster { return &roster{} }

// Lookup finds a member.
func (r *roster) Lookup(id node.ID) (node.Entry, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.byID[id]
	return e, ok
}

// ByFingerprint finds the owner of a certificate.
func (r *roster) ByFingerprint(fp node.Fingerprint) (node.ID, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	id, ok := r.byFP[fp]
	return id, ok
}

// Entries lists the members by id.
func (r *roster) Entries() []node.Entry {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.SortedFunc(maps.Values(r.byID), func(a, b node.Entry) int {
		return strings.Compare(string(a.ID), string(b.ID))
	})
}

// set replaces the members and returns the certificates that do not belong any more.
func (r *roster) set(entries []node.Entry) (gone []node.Fingerprint) {
	byID := make(map[node.ID]node.Entry, len(entries))
	byFP := make(map[node.Fingerprint]node.ID, len(entries))
	for _, e := range entries {
		byID[e.ID], byFP[e.Fingerprint] = e, e.ID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for fp := range r.byFP {
		if _, ok := byFP[fp]; !ok {
			gone = append(gone, fp)
		}
	}
	r.byID, r.byFP = byID, byFP
	return gone
}
