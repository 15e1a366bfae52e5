package consensus

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// Raft's replication to a member waits longer after each failed request, up to 10.24 seconds, and does not notice that
// the member is back: heartbeats are sent by another goroutine. Decisions made while the member was cut off, deleted
// keys included, would reach it that late. So the transport keeps a failed request until a heartbeat is answered again
// and then repeats it: raft counts no failure, and replication resumes with the first heartbeat.

const (
	// appendRetryMax bounds the pause between attempts while heartbeats are answered and other requests are not.
	appendRetryMax = 500 * time.Millisecond
	// leadsPoll is how often a kept request checks that its leader still leads.
	leadsPoll = 100 * time.Millisecond
	// rejectedPause is how long a follower that could not store entries is left alone, instead of raft's backoff.
	rejectedPause = 250 * time.Millisecond
)

// reach knows which members answer heartbeats.
type reach struct {
	// leads reports whether this node still replicates to a member in a term.
	leads func(id node.ID, term uint64) bool

	// unanswered is called when a member does not answer a heartbeat and did before.
	unanswered func()

	mu     sync.Mutex
	beats  map[raft.ServerID]chan struct{} // closed and removed when the member answers a heartbeat
	failed map[raft.ServerID]time.Time     // when the last heartbeat failed, of members that have not answered since
}

func newReach(leads func(node.ID, uint64) bool, unanswered func()) *reach {
	return &reach{leads: leads, unanswered: unanswered, beats: map[raft.ServerID]chan struct{}{},
		failed: map[raft.ServerID]time.Time{}}
}

// noteFailed notes that a member has not answered a heartbeat.
func (r *reach) noteFailed(id raft.ServerID) {
	r.mu.Lock()
	_, known := r.failed[id]
	r.failed[id] = time.Now()
	r.mu.Unlock()
	if !known {
		r.unanswered()
	}
}

// isFailing reports whether a member does not answer heartbeats.
func (r *reach) isFailing(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.failed, func(_ raft.ServerID, at time.Time) bool { return now.Sub(at) > failedFor })
	return len(r.failed) > 0
}

// noteAnswered notes that a member has answered a heartbeat, and wakes the requests that wait for it.
func (r *reach) noteAnswered(id raft.ServerID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, id)
	if c, waits := r.beats[id]; waits {
		close(c)
		delete(r.beats, id)
	}
}

// nextHeartbeat returns a channel that is closed by the next heartbeat that the member answers.
func (r *reach) nextHeartbeat(id raft.ServerID) <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.beats[id]
	if c == nil {
		c = make(chan struct{})
		r.beats[id] = c
	}
	return c
}

// waitHeartbeat pauses, then waits for an answered heartbeat. It returns false when the request is of no use any more:
// ctx has ended, or this node does not replicate to the member in that term.
func (r *reach) waitHeartbeat(ctx context.Context, id raft.ServerID, term uint64, pause time.Duration) bool {
	if !r.pauseLeading(ctx, id, term, pause) {
		return false
	}
	beat := r.nextHeartbeat(id)
	tick := time.NewTicker(leadsPoll)
	defer tick.Stop()
	for r.leads(node.ID(id), term) {
		select {
		case <-beat:
			return true
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// pauseLeading waits a short time. It returns false when the request is of no use any more, see waitHeartbeat.
func (r *reach) pauseLeading(ctx context.Context, id raft.ServerID, term uint64, pause time.Duration) bool {
	return backoff.Sleep(ctx, pause) && r.leads(node.ID(id), term)
}

// replicatesTo reports whether this node leads in a term and id is in raft's configuration.
func (n *Node) replicatesTo(id node.ID, term uint64) bool {
	r := n.raft.Load()
	if r == nil || n.isStopped() || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	f := r.GetConfiguration()
	if f.Error() != nil {
		return false
	}
	for _, s := range f.Configuration().Servers {
		if s.ID == raft.ServerID(id) {
			return true
		}
	}
	return false
}
