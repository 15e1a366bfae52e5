package daemon

import "math/bits"

// work is what the local master is working on, for others to compare: the next power of two, lest every request make
// this node tell all others something new.
func (s *service) work() uint32 {
	st := s.req.Stats()
	busy := uint32(max(st.Conns-st.Idle, 0) + st.Waiting)
	if busy == 0 {
		return 0
	}
	return 1 << bits.Len32(busy-1)
}
