package fileserve

import (
	"context"
	"errors"
	"sync"
	"time"
)

// flights lets those who want the same thing at the same time have it made once.
type flights[K comparable, V any] struct {
	mu sync.Mutex
	m  map[K]*flight[V]
}

type flight[V any] struct {
	done  chan struct{}
	value V
	err   error
}

// errCut says that whoever made a thing did not come to its end.
var errCut = errors.New("it was not finished")

// do makes a value, or waits for the one that is being made. The one who makes it is not disturbed by the end of ctx.
func (f *flights[K, V]) do(ctx context.Context, key K, make_ func() (V, error)) (V, error) {
	f.mu.Lock()
	if other := f.m[key]; other != nil {
		f.mu.Unlock()
		select {
		case <-other.done:
			return other.value, other.err
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
	}
	if f.m == nil {
		f.m = map[K]*flight[V]{}
	}
	mine := &flight[V]{done: make(chan struct{}), err: errCut}
	f.m[key] = mine
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.m, key)
		f.mu.Unlock()
		close(mine.done)
	}()
	mine.value, mine.err = make_()
	return mine.value, mine.err
}

// slots are places for something that only so many may do at a time.
type slots chan struct{}

// errBusy says that no place became free in time.
var errBusy = errors.New("too many wait for it")

func (s slots) enter(ctx context.Context, patience time.Duration) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case s <- struct{}{}:
		return nil
	case <-t.C:
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s slots) leave() { <-s }
