package scale

import (
	"slices"
	"time"
)

// As consensus and the raft library have them.
const (
	commitTimeout = 50 * time.Millisecond
	appendEntries = 64
	batchRequests = 512
	maxVoters     = 5
	raftBytes     = 150 // of an AppendEntries without entries, TLS included
)

// raft is the way of a decision: requests gather while an entry is under way (consensus/batch.go); the leader writes the entry to its own
// disk and then sends it, one message at a time to each other node; a majority of the voters has it on disk; the leader applies and
// answers. The others hear of the commit with the next message, which comes with the next entry or after a random time.
type raft struct {
	w         *World
	leader    *node
	followers []*follower
	size      int // bytes of a request

	log          []int // what each entry says, ascending; of what it says only that matters
	last, commit int   // indexes
	queue        fifo[*request]
	batch        []*request
	busy         bool
	waits        fifo[waiting]

	// applied is told of each node that has heard what an entry says, and all before it.
	applied func(n *node, says int)
}

// request is a proposal. That it is urgent means that the others are told of the commit at once.
type request struct {
	says   int
	urgent bool
	done   func()
}

type follower struct {
	r       *raft
	n       *node
	voter   bool
	has     int // index, as the leader knows
	disk    int // index on its disk
	known   int // commit index it has heard of
	sending bool
	again   bool
	timer   int // which of them counts
}

func (w *World) newRaft(size int) *raft {
	r := &raft{w: w, leader: w.nodes[0], size: size}
	for i, n := range w.nodes[1:] {
		f := &follower{r: r, n: n, voter: i+1 < maxVoters}
		r.followers = append(r.followers, f)
		f.idle()
	}
	return r
}

// propose brings a request from a node to the leader, and back.
func (r *raft) propose(from *node, says int, urgent bool, done func()) {
	w := r.w
	q := &request{says: says, urgent: urgent, done: done}
	if from == r.leader {
		r.submit(q)
		return
	}
	q.done = func() {
		r.leader.peer(from, agreed, w.RelayBytes, func() { from.daemon.Do(w.RelayBack, done) })
	}
	from.daemon.Do(w.RelayOut, func() {
		from.peer(r.leader, agreed, w.RelayBytes+r.size, func() { r.leader.daemon.Do(w.RelayIn, func() { r.submit(q) }) })
	})
}

func (r *raft) submit(q *request) {
	r.queue.push(q)
	if !r.busy {
		r.busy = true
		r.next()
	}
}

// next makes an entry of what waits.
func (r *raft) next() {
	r.batch = nil
	for r.queue.len() > 0 && len(r.batch) < batchRequests {
		r.batch = append(r.batch, r.queue.pop())
	}
	if len(r.batch) == 0 {
		r.busy = false
		return
	}
	says := 0
	for _, q := range r.batch {
		says = max(says, q.says)
	}
	r.store(says, r.answer)
}

// store writes an entry to the leader's disk and has it sent; then is called when it is committed and applied.
func (r *raft) store(says int, then func()) {
	r.leader.disk.Serve(r.w.RaftStore, func() {
		r.log = append(r.log, says)
		r.last++
		for _, f := range r.followers {
			f.trigger()
		}
		r.waits.push(waiting{r.last, then})
		r.count()
	})
}

// waiting is an entry that is not committed yet.
type waiting struct {
	index int
	then  func()
}

// count moves the commit index to what a majority of the voters has, and applies what is committed now.
func (r *raft) count() {
	has := []int{r.last}
	for _, f := range r.followers {
		if f.voter {
			has = append(has, f.has)
		}
	}
	slices.Sort(has)
	r.commit = max(r.commit, has[(len(has)-1)/2])
	for r.waits.len() > 0 && r.waits.first().index <= r.commit {
		e := r.waits.pop()
		r.leader.daemon.Do(r.w.RaftApply, func() {
			r.applied(r.leader, r.log[e.index-1])
			e.then()
		})
	}
}

func (r *raft) answer() {
	urgent := false
	for _, q := range r.batch {
		urgent = urgent || q.urgent
		q.done()
	}
	if urgent && r.queue.len() == 0 { // an empty entry, with which the others hear of it
		r.store(r.log[r.last-1], r.next)
		return
	}
	r.next()
}

// idle waits for an entry, or until it is time to tell of commits.
func (f *follower) idle() {
	f.timer++
	mine := f.timer
	f.r.w.Sim.After(f.r.w.Sim.Between(commitTimeout, 2*commitTimeout), func() {
		if f.timer == mine && !f.sending && !f.r.quiet() {
			f.send()
		}
	})
}

// quiet says that there is nothing left to tell anybody, so that the simulation ends.
func (r *raft) quiet() bool {
	for _, f := range r.followers {
		if f.known < r.last {
			return false
		}
	}
	return !r.busy
}

func (f *follower) trigger() {
	if f.sending {
		f.again = true
		return
	}
	f.send()
}

func (f *follower) send() {
	w, r := f.r.w, f.r
	f.sending, f.again = true, false
	f.timer++
	upTo, commit := min(r.last, f.has+appendEntries), r.commit
	n := upTo - f.has
	r.leader.daemon.Do(w.Fan, func() {
		r.leader.peer(f.n, agreed, raftBytes+n*r.size, func() {
			f.n.daemon.Do(w.Fan, func() {
				if n == 0 {
					f.stored(upTo, commit)
					return
				}
				f.n.disk.Serve(w.RaftStore, func() { f.stored(upTo, commit) })
			})
		})
	})
}

// stored is the follower's end: it knows what is committed, and answers.
func (f *follower) stored(upTo, commit int) {
	w := f.r.w
	f.disk = upTo
	if known := min(commit, f.disk); known > f.known {
		f.known = known
		f.n.daemon.Do(w.RaftApply, func() { f.r.applied(f.n, f.r.log[known-1]) })
	}
	f.n.peer(f.r.leader, agreed, raftBytes, func() {
		f.r.leader.daemon.Do(w.Fan, func() {
			f.has = upTo
			f.r.count()
			f.sending = false
			if f.again || f.has < f.r.last {
				f.send()
				return
			}
			f.idle()
		})
	})
}
