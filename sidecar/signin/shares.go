package signin

import (
	"net/netip"
	"time"
)

const (
	// shareSettles is how long after it was let through a newcomer counts though no pending key of it is known yet.
	shareSettles = time.Minute
	// shareAgain is how often the ids of an address are looked up anew.
	shareAgain = time.Second
)

// shares are the pending keys that came through this node, by address. An address may have as many as there is room
// left for others: half of all when it is alone, and each further one half of the rest. So no address fills
// Newcomers.MaxPending, and a load balancer behind which all minions are has half of it before an operator has to
// decide about some.
type shares struct {
	waiting func(id string) bool // its key is pending
	by      map[netip.Addr]*share
	count   int       // ids in by
	swept   time.Time // when all were looked up
}

type share struct {
	ids    map[string]time.Time // when they were let through
	looked time.Time
}

func newShares(waiting func(id string) bool) *shares {
	return &shares{waiting: waiting, by: map[netip.Addr]*share{}}
}

// isFull says whether an address has its share where room is left for so many.
func (s *shares) isFull(from netip.Addr, left int, now time.Time) bool {
	a := s.by[from]
	if a == nil || len(a.ids) < left {
		return false
	}
	if now.Sub(a.looked) >= shareAgain {
		s.forgetDecided(from, a, now)
	}
	return len(a.ids) >= left
}

// addNewcomer notes a newcomer that is let through. Of those whose keys are decided none are kept beyond twice most.
func (s *shares) addNewcomer(from netip.Addr, id string, most int, now time.Time) {
	if s.count >= 2*most && now.Sub(s.swept) >= shareSettles {
		s.swept = now
		for addr, a := range s.by {
			s.forgetDecided(addr, a, now)
		}
	}
	a := s.by[from]
	if a == nil {
		a = &share{ids: map[string]time.Time{}}
		s.by[from] = a
	}
	if _, again := a.ids[id]; !again {
		s.count++
	}
	a.ids[id] = now
}

// forgetDecided forgets the ids of an address whose keys do not wait any more.
func (s *shares) forgetDecided(from netip.Addr, a *share, now time.Time) {
	a.looked = now
	for id, at := range a.ids {
		if now.Sub(at) >= shareSettles && !s.waiting(id) {
			delete(a.ids, id)
			s.count--
		}
	}
	if len(a.ids) == 0 {
		delete(s.by, from)
	}
}
