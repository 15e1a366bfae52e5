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

// doOnce has a value made, or waits for the one that is being made, until ctx ends. It is made to its end all the same:
// who gave up asks again, and the hash of a file of some hundred gigabytes would never be there.
func (f *flights[K, V]) doOnce(ctx context.Context, by *makers, key K,
	make_ func(context.Context) (V, error)) (v V, err error) {
	it, err := f.findFlight(by, key, make_)
	if err != nil {
		return v, err
	}
	select {
	case <-it.done:
		return it.value, it.err
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

func (f *flights[K, V]) findFlight(by *makers, key K, make_ func(context.Context) (V, error)) (*flight[V], error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if it := f.m[key]; it != nil {
		return it, nil
	}
	if f.m == nil {
		f.m = map[K]*flight[V]{}
	}
	it := &flight[V]{done: make(chan struct{}), err: errCut}
	f.m[key] = it
	err := by.runMaker(func() {
		defer func() {
			f.mu.Lock()
			delete(f.m, key)
			f.mu.Unlock()
			close(it.done)
		}()
		it.value, it.err = make_(by.ctx)
	})
	if err != nil {
		delete(f.m, key)
	}
	return it, err
}

// makers are the goroutines that make what others want. They end with ctx, not with the requests for which they were
// begun: those are waited for before the file server is closed.
type makers struct {
	ctx context.Context

	mu    sync.Mutex
	ended bool
	wg    sync.WaitGroup
}

func (m *makers) runMaker(f func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return errCut
	}
	m.wg.Go(f)
	return nil
}

// waitAll returns when all have ended; no other is begun.
func (m *makers) waitAll() {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.wg.Wait()
}

// slots are places for something that only so many may do at a time.
type slots chan struct{}

// errBusy says that no place became free in time.
var errBusy = errors.New("too many wait for it")

func (s slots) takeSlot(ctx context.Context, timeout time.Duration) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(timeout)
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

func (s slots) freeSlot() { <-s }
