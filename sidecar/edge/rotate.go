package edge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/edge/netconn"
)

// Rotation says how subscribers move to a new generation.
type Rotation struct {
	// Window is over what time they move, one after the other. 0: all at once.
	Window time.Duration
	// Nudge is a publication that each gets when it moves; nil: nothing.
	Nudge []byte
	// Hold keeps what is published from those which have not moved until they do: they could not read it, and would all
	// sign in at once. Without it they get Publication.Prev.
	Hold bool
	// Busy, if given, says that those who moved are more than sign in; then the others stay for longer, in all by Late.
	Busy func() bool
	Late time.Duration
}

// rotation moves the subscribers of one generation to the next.
type rotation struct {
	hurry chan struct{} // closed: move the rest at once
	once  sync.Once
	done  chan struct{}
	left  atomic.Int64 // subscribers still to be moved
	mute  atomic.Bool  // they get no nudge any more
}

// rush moves the rest at once.
func (r *rotation) rush() { r.once.Do(func() { close(r.hurry) }) }

// rotateStep is the shortest time between two steps of a rotation or drain.
const rotateStep = 5 * time.Millisecond

// Rotate begins a new generation. Connections made from now on start on it;
// those there are move one after the other. A rotation still under way is
// finished at once. Without a window all have moved when Rotate returns.
func (e *PubEdge) Rotate(how Rotation) {
	e.rotating.Lock()
	defer e.rotating.Unlock()
	e.finishLocked()
	r := &rotation{hurry: make(chan struct{}), done: make(chan struct{})}
	if !e.beginGeneration(r) {
		return
	}
	old := e.members()
	r.left.Store(int64(len(old)))
	if how.Window <= 0 {
		e.rotate(r, old, how)
		return
	}
	if how.Hold {
		for _, s := range old {
			s.hold()
		}
	}
	go e.rotate(r, old, how)
}

// beginGeneration makes a new feed the current one; false after Close.
func (e *PubEdge) beginGeneration(r *rotation) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.prev, e.cur = e.cur, e.newGeneration(e.cur.number+1)
	e.rotation = r
	e.wg.Add(1)
	return true
}

// members lists the connections which have shaken hands.
func (e *PubEdge) members() (all []*sub) {
	for _, h := range e.shards {
		h.mu.Lock()
		all = append(all, h.members...)
		h.mu.Unlock()
	}
	return all
}

// endRotation leaves the subscribers that are still to be moved where they are, because their connections are cut next:
// see PubConfig.SignInTime.
func (e *PubEdge) endRotation() {
	e.rotating.Lock()
	defer e.rotating.Unlock()
	if e.rotation != nil {
		e.rotation.mute.Store(true)
	}
	e.finishLocked()
}

func (e *PubEdge) finishLocked() {
	if e.rotation == nil {
		return
	}
	e.rotation.rush()
	<-e.rotation.done
	e.mu.Lock()
	e.rotation = nil
	e.mu.Unlock()
}

func (e *PubEdge) rotate(r *rotation, old []*sub, how Rotation) {
	defer e.wg.Done()
	defer close(r.done)
	to, _ := e.current()
	drains := func() bool { return false }
	if !how.Hold {
		drains = e.drainsBefore(netconn.Clock() + int64(how.Window))
		// then they cannot read any more what is published
		defer time.AfterFunc(how.Window+how.Late, r.rush).Stop()
		how.Window -= e.awaitAge(old, how.Window, r.hurry)
	}
	stands := how.stands()
	paused := func(now time.Time) bool { return drains() || stands(now) }
	spread(context.Background(), len(old), how.Window, r.hurry, paused, func(i int) {
		if s := old[i]; !r.mute.Load() {
			s.shard.mu.Lock()
			s.move(to, how.Nudge)
			if s.known {
				e.newcomers.add(s, true)
			}
			s.shard.mu.Unlock()
		}
		r.left.Add(-1)
	})
	e.mu.Lock()
	e.prev = nil
	e.mu.Unlock()
}

// awaitAge waits until all subscribers have been connected for SignInTime, but for no more than half of the window. It
// returns how long it has waited.
func (e *PubEdge) awaitAge(all []*sub, window time.Duration, hurry <-chan struct{}) time.Duration {
	if len(all) == 0 {
		return 0
	}
	youngest := all[0].since
	for _, s := range all {
		youngest = max(youngest, s.since)
	}
	wait := min(e.cfg.SignInTime-time.Duration(netconn.Clock()-youngest), window/2)
	if wait <= 0 {
		return 0
	}
	select {
	case <-hurry:
	case <-time.After(wait):
	}
	return wait
}

// drainsBefore tells whether a drain is under way that lets go of the last subscriber before a rotation's end: those
// which have not moved need not sign in twice. A longer drain would leave too many for the end of the rotation.
func (e *PubEdge) drainsBefore(end int64) func() bool {
	return func() bool {
		by := e.drainedBy.Load()
		return netconn.Clock() < by && by < end
	}
}

// stands says when a rotation that begins now makes a pause.
func (r Rotation) stands() func(time.Time) bool {
	end := time.Now().Add(r.Window + r.Late)
	return func(now time.Time) bool { return r.Busy != nil && now.Before(end) && r.Busy() }
}

// spread calls do for 0…n-1 evenly over window, the rest at once when hurry
// closes; while stands says so time stands still. It stops when ctx ends.
func spread(ctx context.Context, n int, window time.Duration, hurry <-chan struct{}, stands func(time.Time) bool,
	do func(int)) {
	now := time.Now()
	start := now
	step := time.NewTimer(0)
	defer step.Stop()
	pause := rotateStep
	if n > 0 {
		pause = max(pause, window/time.Duration(n))
	}
	for i, rush := 0, window <= 0; i < n; {
		last := now
		if now = time.Now(); stands != nil && stands(now) {
			start = start.Add(now.Sub(last))
		}
		due := n
		if !rush {
			due = min(n, int(float64(n)*float64(now.Sub(start))/float64(window))+1)
		}
		for ; i < due && ctx.Err() == nil; i++ {
			do(i)
		}
		if i == n {
			return
		}
		step.Reset(pause)
		select {
		case <-ctx.Done():
			return
		case <-hurry:
			rush = true
		case <-step.C:
		}
	}
}
