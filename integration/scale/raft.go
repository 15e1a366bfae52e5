package scale

import "slices"

// raft is the way of one decision after the other: the leader writes the entry to its own disk and sends it to each
// other node; when a majority of the voters has it on disk the leader applies it and answers. The others learn of
// the commit with the next entry, which is a barrier when no other decision follows.
type raft struct {
	w         *World
	leader    *node
	followers []*follower
	size      int // bytes of a request

	last, commit int // what the latest entry says, and the latest of which a majority has it
	then         func()

	// applied is told of each node that has heard what an entry says, and all before it.
	applied func(n *node, says int)
}

type follower struct {
	r     *raft
	n     *node
	voter bool
	has   int // on its disk, as the leader knows
	known int // commit it has heard of
}

func (w *World) newRaft(size int) *raft {
	r := &raft{w: w, leader: w.nodes[0], size: size}
	for i, n := range w.nodes[1:] {
		r.followers = append(r.followers, &follower{r: r, n: n, voter: i+1 < maxVoters})
	}
	return r
}

// propose brings a request from a node to the leader, and back.
func (r *raft) propose(from *node, says int, done func()) {
	w := r.w
	decide := func() {
		r.leader.disk.Serve(w.RaftStore, func() {
			r.last = says
			r.then = func() {
				r.applied(r.leader, says)
				if from == r.leader {
					done()
				} else {
					r.leader.peer(from, w.RelayBytes, func() { from.daemon.Do(w.RelayBack, done) })
				}
			}
			for _, f := range r.followers {
				f.send(r.size)
			}
			r.count()
		})
	}
	if from == r.leader {
		decide()
		return
	}
	from.daemon.Do(w.RelayOut, func() {
		from.peer(r.leader, w.RelayBytes+r.size, func() { r.leader.daemon.Do(w.RelayIn, decide) })
	})
}

// count applies what a majority of the voters has.
func (r *raft) count() {
	has := []int{r.last}
	for _, f := range r.followers {
		if f.voter {
			has = append(has, f.has)
		}
	}
	slices.Sort(has)
	if commit := has[(len(has)-1)/2]; commit > r.commit {
		r.commit = commit
		r.leader.daemon.Do(r.w.RaftApply, func() {
			r.then()
			r.leader.disk.Serve(r.w.RaftStore, func() {
				for _, f := range r.followers {
					if f.known < r.commit {
						f.send(barrierBytes)
					}
				}
			})
		})
	}
}

// barrierBytes is about the size of a barrier entry.
const barrierBytes = 64

// send brings an entry, and what is committed.
func (f *follower) send(size int) {
	r, w, upTo, commit := f.r, f.r.w, f.r.last, f.r.commit
	r.leader.daemon.Do(w.Fan, func() {
		r.leader.peer(f.n, raftBytes+size, func() {
			f.n.daemon.Do(w.Fan, func() {
				f.n.disk.Serve(w.RaftStore, func() { f.stored(upTo, commit) })
			})
		})
	})
}

// stored is the follower's end: it knows what is committed, and answers.
func (f *follower) stored(upTo, commit int) {
	r, w := f.r, f.r.w
	if commit > f.known {
		f.known = commit
		f.n.daemon.Do(w.RaftApply, func() { r.applied(f.n, commit) })
	}
	f.n.peer(r.leader, raftBytes, func() {
		r.leader.daemon.Do(w.Fan, func() {
			f.has = max(f.has, upTo)
			r.count()
		})
	})
}
