package front

import (
	"context"
	"net/netip"
	"runtime"
	"slices"
	"sync"
)

// Turns bounds how many handshakes compute at a time: keys, signatures and their verification. A stranger gets
// milliseconds of that with a few hundred bytes. Networks take turns, so that one from which many handshakes come does
// not keep others waiting.
type Turns struct {
	mu      sync.Mutex
	free    int
	waiting map[netip.Addr][]waiter // by network
	order   []netip.Addr            // of waiting
}

// waiter waits for a turn.
type waiter struct {
	turn  chan struct{} // closed when it has one
	again bool          // it had one before
}

// NewTurns returns turns of which so many may be had at a time; 0: half of the CPUs.
func NewTurns(most int) *Turns {
	if most <= 0 {
		most = max(runtime.GOMAXPROCS(0)/2, 1)
	}
	return &Turns{free: most, waiting: map[netip.Addr][]waiter{}}
}

// takeTurn waits for a turn, which is to be given back. It fails when ctx ends first. again: the same handshake had one
// before, and gets another one before those which have not begun. Else, in a crowd, none would be complete in time.
func (t *Turns) takeTurn(ctx context.Context, network netip.Addr, again bool) error {
	t.mu.Lock()
	if t.free > 0 {
		t.free--
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	if len(t.waiting[network]) == 0 {
		t.order = append(t.order, network)
	}
	line := t.waiting[network]
	at := len(line)
	if again {
		if i := slices.IndexFunc(line, func(w waiter) bool { return !w.again }); i >= 0 {
			at = i
		}
	}
	t.waiting[network] = slices.Insert(line, at, waiter{mine, again})
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	if !t.stopWaiting(network, mine) { // it was given just now
		t.giveBack()
	}
	return ctx.Err()
}

// stopWaiting ends waiting. false: there is a turn.
func (t *Turns) stopWaiting(network netip.Addr, mine chan struct{}) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	line := t.waiting[network]
	for i, other := range line {
		if other.turn == mine {
			t.setLine(network, append(line[:i:i], line[i+1:]...))
			return true
		}
	}
	return false
}

// setLine replaces what waits of a network. Wants mu.
func (t *Turns) setLine(network netip.Addr, line []waiter) {
	if len(line) > 0 {
		t.waiting[network] = line
		return
	}
	delete(t.waiting, network)
	for i, other := range t.order {
		if other == network {
			t.order = append(t.order[:i:i], t.order[i+1:]...)
			return
		}
	}
}

// giveBack gives a turn back, to who waits longest in the network whose turn it is.
func (t *Turns) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.order) == 0 {
		t.free++
		return
	}
	network := t.order[0]
	line := t.waiting[network]
	close(line[0].turn)
	t.order = t.order[1:]
	if len(line) > 1 {
		t.waiting[network] = line[1:]
		t.order = append(t.order, network)
		return
	}
	delete(t.waiting, network)
}

// countWaiting is how many wait.
func (t *Turns) countWaiting() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, line := range t.waiting {
		n += len(line)
	}
	return n
}
