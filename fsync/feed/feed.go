package feed

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
)

// Sender says to one member what there is to say. Its methods are called one at a time, by the line's own goroutine.
type Sender[K comparable] interface {
	// First sends what goes before digests and names; did is false when there is nothing.
	First(ctx context.Context) (did bool, err error)
	// Digest tells what there is here; with ask the member shall tell the same.
	Digest(ctx context.Context, ask bool) error
	// Send sends what there is of names. Rest are those that have to wait for the next turn.
	Send(ctx context.Context, names []K) (rest []K, err error)
	// Failed hears of every turn that failed, before the pause.
	Failed(err error)
}

// Config is what a Feed needs.
type Config[K comparable, S Sender[K]] struct {
	Members func() []node.ID // the other members
	// New makes the sender of a line. It is called with a lock held that the Feed's methods need.
	New func(*Line[K]) S
	// After, if set, is called at the start and after every change, from one goroutine; changed says that members have
	// come or gone.
	After func(changed bool)
	Ready <-chan struct{} // closed when there may be turns

	Covers bool // a digest alone brings the member what it lacks: names need not be sent besides
	Limit  int  // of names that wait for a member
	Batch  int  // of names in a turn
	Timing Timing
}

// Timing are a feed's timeouts and intervals.
type Timing struct {
	Settle time.Duration // between changes of members and a look at them
	Linger time.Duration // between the first news and a turn, so that others come along
	Digest time.Duration // between digests
	Retry  time.Duration // first pause after a failed turn, doubled up to RetryMax
	// RetryMax is the longest pause: a member that is back lacks news until it is over.
	RetryMax time.Duration
}

// Feed is the lines to all other members. Create it with New.
type Feed[K comparable, S Sender[K]] struct {
	cfg Config[K, S]

	mu    sync.Mutex
	peers map[node.ID]*peer[K, S]
	order []node.ID // of peers

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

type peer[K comparable, S Sender[K]] struct {
	line   *Line[K]
	sender S
	cancel context.CancelFunc
}

// New returns a feed without lines.
func New[K comparable, S Sender[K]](cfg Config[K, S]) *Feed[K, S] {
	cfg.Limit, cfg.Batch = cmp.Or(cfg.Limit, 1), cmp.Or(cfg.Batch, 1)
	return &Feed[K, S]{cfg: cfg, peers: map[node.ID]*peer[K, S]{}}
}

// Open begins to follow the members, which ctx does not end. Changed gets a value after changes of members, several at
// once perhaps; changes of something else do no harm.
func (f *Feed[K, S]) Open(ctx context.Context, changed <-chan struct{}) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.wg.Go(func() { f.followPeers(run, changed) })
}

// Close ends the turns and waits for them.
func (f *Feed[K, S]) Close() {
	if f.cancel != nil {
		f.cancel()
		f.wg.Wait()
	}
}

// followPeers keeps a line to each member.
func (f *Feed[K, S]) followPeers(ctx context.Context, changed <-chan struct{}) {
	for {
		others := f.setPeers(ctx)
		if f.cfg.After != nil {
			f.cfg.After(others)
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-changed:
			if !ok || !backoff.Sleep(ctx, f.cfg.Timing.Settle) {
				return
			}
		}
	}
}

// setPeers begins lines to new members, and ends those to members that left.
func (f *Feed[K, S]) setPeers(ctx context.Context) (changed bool) {
	members := f.cfg.Members()
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, p := range f.peers {
		if !slices.Contains(members, id) {
			p.cancel()
			delete(f.peers, id)
			changed = true
		}
	}
	for _, id := range members {
		if f.peers[id] != nil {
			continue
		}
		l := newLine[K](id, f.cfg.Limit, f.cfg.Covers)
		p := &peer[K, S]{line: l, sender: f.cfg.New(l)}
		f.peers[id] = p
		run, cancel := context.WithCancel(ctx)
		p.cancel = cancel
		l.Tell(true)
		f.wg.Go(func() { f.servePeer(run, p) })
		changed = true
	}
	f.order = slices.Sorted(maps.Keys(f.peers))
	return changed
}

// Peer returns the sender of a member's line.
func (f *Feed[K, S]) Peer(id node.ID) (s S, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if p := f.peers[id]; p != nil {
		return p.sender, true
	}
	return s, false
}

// Alive is Peer of a member that was just heard of: if it could not be reached, it is tried again now.
func (f *Feed[K, S]) Alive(id node.ID) (s S, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[id]
	if p == nil {
		return s, false
	}
	p.line.Alive()
	return p.sender, true
}

// Peers returns the senders of all lines, in order of their members.
func (f *Feed[K, S]) Peers() []S {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]S, 0, len(f.order))
	for _, id := range f.order {
		out = append(out, f.peers[id].sender)
	}
	return out
}

// eachLine calls do for all lines, in order.
func (f *Feed[K, S]) eachLine(do func(*Line[K])) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.order {
		do(f.peers[id].line)
	}
}

// Add has things be sent to all members.
func (f *Feed[K, S]) Add(names ...K) { f.eachLine(func(l *Line[K]) { l.Add(names...) }) }

// Tell has all members hear a digest; with ask they shall tell their own.
func (f *Feed[K, S]) Tell(ask bool) { f.eachLine(func(l *Line[K]) { l.Tell(ask) }) }

// Got says that something is here now, or never will be, whoever has told of it.
func (f *Feed[K, S]) Got(name K) { f.eachLine(func(l *Line[K]) { l.noteGot(name) }) }

// Status returns the present state of all lines.
func (f *Feed[K, S]) Status() (out []Status) {
	f.eachLine(func(l *Line[K]) { out = append(out, l.Status()) })
	return out
}

// Progress tells of each member how much of what it has is here.
func (f *Feed[K, S]) Progress() (out []Progress) {
	f.eachLine(func(l *Line[K]) { out = append(out, l.Progress()) })
	return out
}
