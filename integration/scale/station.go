package scale

import "time"

// Station serves one customer after the other: a disk, a direction of a network card.
type Station struct {
	sim  *Sim
	free time.Duration // when it has served all that have come
	busy time.Duration

	returns int // on a disk: written, and not yet in a sync of the file system
}

// NewStation returns a station with nothing to serve.
func (s *Sim) NewStation() *Station { return &Station{sim: s} }

// Serve serves when all who came before are served, and returns when that will be; done may be nil.
func (q *Station) Serve(d time.Duration, done func()) time.Duration {
	q.free = max(q.free, q.sim.Now()) + d
	q.busy += d
	if done != nil {
		q.sim.At(q.free, done)
	}
	return q.free
}

// Wait is how long a request that comes now waits before being served.
func (q *Station) Wait() time.Duration { return max(0, q.free-q.sim.Now()) }

// syncReturns brings all returns that were written on the disk to it.
func (n *node) syncReturns(done func()) {
	returns := n.disk.returns
	n.disk.returns = 0
	n.disk.Serve(n.w.Fsync+time.Duration(returns)*n.w.SyncRet, done)
}
