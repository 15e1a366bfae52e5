package gossip

import (
	"net/netip"
	"sync"
	"time"
)

// filterAge is how long the set of allowed addresses may lag behind the roster. Building it for each packet would let a
// flood of packets cost more than it has to.
const filterAge = 100 * time.Millisecond

// filter knows the host addresses of the members. Ports are not compared, for NAT may change them; the key decides.
type filter struct {
	roster Roster
	now    func() time.Time

	mu    sync.Mutex
	built time.Time
	addrs map[netip.Addr]struct{}
}

func newFilter(r Roster, now func() time.Time) *filter { return &filter{roster: r, now: now} }

func (f *filter) isMember(a netip.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.now(); f.addrs == nil || now.Sub(f.built) >= filterAge {
		f.built, f.addrs = now, map[netip.Addr]struct{}{}
		for _, e := range f.roster.Entries() {
			f.addrs[e.Addr.Addr()] = struct{}{}
		}
	}
	_, ok := f.addrs[a]
	return ok
}
