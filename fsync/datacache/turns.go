package datacache

import (
	"context"
	"hash/maphash"
)

// turns are locks by id: one minion's files are read and written, and what the table says of them is changed, only by
// the goroutine that holds the minion's turn. Minions share turns, so that their number is bounded; therefore a
// goroutine must not hold more than one. Order: a place for a large change, the turn, a place for a small one or for
// reading, Store.mu.
type turns struct {
	seed  maphash.Seed
	locks [64]turn
}

func newTurns() turns {
	t := turns{seed: maphash.MakeSeed()}
	for i := range t.locks {
		t.locks[i] = make(turn, 1)
	}
	return t
}

func (t *turns) of(id string) turn {
	return t.locks[maphash.String(t.seed, id)%uint64(len(t.locks))]
}

// await returns when every turn that is held now has been given back.
func (t *turns) await() {
	for _, turn := range t.locks {
		turn <- struct{}{}
		<-turn
	}
}

// turn is one of them. Who waits longest gets it next.
type turn chan struct{}

func (t turn) Lock()   { t <- struct{}{} }
func (t turn) Unlock() { <-t }

// take is for places, and for turns that the caller may stop waiting for: then it returns ctx's error.
func take(ctx context.Context, places chan struct{}) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
