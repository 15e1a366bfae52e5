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

	wanted int // by so many whose ctx has not ended
	cancel context.CancelFunc
}

// errCut says that whoever made a thing did not come to its end.
var errCut = errors.New("it was not finished")

// do makes a value, or waits for the one that is being made. The one who makes it is not disturbed by the end of ctx while somebody else waits for it: the
// context it is made in ends with base, or when nobody wants it any more.
func (f *flights[K, V]) do(ctx, base context.Context, key K, make_ func(context.Context) (V, error)) (V, error) {
	f.mu.Lock()
	if other := f.m[key]; other != nil {
		defer f.want(ctx, key, other)()
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
	making, cancel := context.WithCancel(base)
	mine := &flight[V]{done: make(chan struct{}), err: errCut, cancel: cancel}
	f.m[key] = mine
	defer f.want(ctx, key, mine)()
	f.mu.Unlock()
	defer func() {
		cancel()
		f.mu.Lock()
		f.forget(key, mine)
		f.mu.Unlock()
		close(mine.done)
	}()
	mine.value, mine.err = make_(making)
	return mine.value, mine.err
}

// want notes that somebody wants what is made until ctx ends, or the function that comes back is called. The caller holds mu.
func (f *flights[K, V]) want(ctx context.Context, key K, it *flight[V]) (stop func() bool) {
	it.wanted++
	return context.AfterFunc(ctx, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if it.wanted--; it.wanted == 0 {
			f.forget(key, it) // who comes now has it made anew
			it.cancel()
		}
	})
}

// forget ends that others are told of it. The caller holds mu.
func (f *flights[K, V]) forget(key K, it *flight[V]) {
	if f.m[key] == it {
		delete(f.m, key)
	}
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
