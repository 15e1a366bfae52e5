package scale

import "time"

// Station serves one customer after the other: a disk, a direction of a network card.
type Station struct {
	sim  *Sim
	free time.Duration // when it has served all that have come
	busy time.Duration

	returns int // on a disk: written, and not yet in a sync of the file system
}

// NewStation returns one that nobody waits for.
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

// Wait is how long somebody who comes now waits before being served.
func (q *Station) Wait() time.Duration { return max(0, q.free-q.sim.Now()) }

// fsync is how long the disk takes now: one that a host plays for a virtual machine is slower while that keeps all its processors busy.
func (n *node) fsync() time.Duration {
	if n.daemon.host.idle == 0 {
		return n.w.FsyncBusy
	}
	return n.w.Fsync
}

// syncReturns brings to the disk all that anybody has written there: a sync of the file system does not tell one node's returns from
// another's that has the same disk.
func (n *node) syncReturns(done func()) {
	d, w := n.disk, n.w
	returns := d.returns
	d.returns = 0
	d.Serve(n.fsync()+time.Duration(returns)*w.SyncRet, done)
}
