package feed

import (
	"context"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/signal"
)

// Line is the way to one member. Its methods never block and may be called with the owner's locks held.
type Line[K comparable] struct {
	id     node.ID
	covers bool // Config.Covers
	wake   chan struct{}
	alive  chan struct{}
	names  *Names[K]
	owed   lacking[K]

	mu     sync.Mutex
	busy   bool // turns are being taken: what is on its way is in no list
	digest bool // it is to be told what there is here
	ask    bool // and shall tell what it has
	off    bool
	err    error
}

func newLine[K comparable](id node.ID, limit int, covers bool) *Line[K] {
	l := &Line[K]{id: id, covers: covers, wake: make(chan struct{}, 1), alive: make(chan struct{}, 1)}
	l.names = NewNames[K](limit, l.Wake)
	return l
}

// ID is the member at the other end.
func (l *Line[K]) ID() node.ID { return l.id }

// Wake has the sender look for something to do.
func (l *Line[K]) Wake() { signal.Send(l.wake) }

// Alive says that the member was just heard of. If it could not be reached, it is tried again now.
func (l *Line[K]) Alive() {
	if l.Err() == nil {
		return
	}
	signal.Send(l.alive)
}

// waitTurn is the pause after a failure, which a sign of life shortens to least.
func (l *Line[K]) waitTurn(ctx context.Context, least, most time.Duration) {
	if !backoff.Sleep(ctx, least) || most <= least {
		return
	}
	t := time.NewTimer(most - least)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-l.alive:
	}
}

// Add has things be sent.
func (l *Line[K]) Add(names ...K) {
	l.mu.Lock()
	idle := l.off || l.covers && l.digest // which brings it all
	if !idle {
		l.names.putNames(names)
	}
	l.mu.Unlock()
	if !idle && len(names) > 0 {
		l.Wake()
	}
}

// Has says whether a name waits to be sent.
func (l *Line[K]) Has(name K) bool { return l.names.Has(name) }

// Tell has the member hear a digest; with ask it shall tell its own.
func (l *Line[K]) Tell(ask bool) {
	l.mu.Lock()
	l.digest, l.ask = true, l.ask || ask
	if l.covers {
		l.names.clearNames()
	}
	l.mu.Unlock()
	l.Wake()
}

// SetOff says whether the member has use for anything.
func (l *Line[K]) SetOff(off bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.off = off; off {
		l.names.clearNames()
	}
}

// Off tells what SetOff has said.
func (l *Line[K]) Off() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.off
}

// Err is what the last turn failed with; nil when it went well.
func (l *Line[K]) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *Line[K]) setErr(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = err
}

func (l *Line[K]) setBusy(busy bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = busy
}

func (l *Line[K]) takeDigest() (due, ask bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	due, ask = l.digest, l.ask
	l.digest, l.ask = false, false
	return due, ask
}

// takeNames returns names to send; again says that there is something else to do even if they are none.
func (l *Line[K]) takeNames(n int) (names []K, again bool) {
	names, whole := l.names.Take(n)
	switch {
	case whole:
		return names, false
	case l.covers:
		l.Tell(false)
		return nil, true
	}
	l.Tell(true) // its own digest tells what else it lacks
	return names, true
}

// Status is what an operator may want to know of a line.
type Status struct {
	ID      node.ID
	Pending int   // names that wait
	Digest  bool  // a digest waits
	Busy    bool  // something is on its way, or was a moment ago
	Off     bool  // the member has no use for any of it
	Err     error // of the last turn
}

// Status returns the present state.
func (l *Line[K]) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Status{ID: l.id, Pending: l.names.Len(), Digest: l.digest, Busy: l.busy, Off: l.off, Err: l.err}
}
