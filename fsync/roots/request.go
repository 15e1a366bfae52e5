package roots

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// request is something that the loop does for a caller.
type request struct {
	ctx  context.Context
	do   func(ctx context.Context) error
	done chan error
}

// ErrOff says that roots are not replicated on this node.
var ErrOff = errors.New("file_roots and pillar_roots are not replicated on this node")

// ErrNoEnv says that this node has no directories of an environment.
var ErrNoEnv = errors.New("no directories of that environment are replicated on this node")

// inLoop has the loop do something, between two rounds.
func (s *Store) inLoop(ctx context.Context, do func(ctx context.Context) error) error {
	if s.run == nil {
		return ErrOff
	}
	r := request{ctx, do, make(chan error, 1)}
	select {
	case s.requests <- r:
	case <-ctx.Done():
		return fmt.Errorf("wait for a round to end: %w", ctx.Err())
	case <-s.run.Done():
		return errors.New("closing")
	}
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-s.run.Done():
		return errors.New("closing")
	}
}

func (s *Store) answer(ctx context.Context, r *request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(r.ctx, cancel)
	defer stop()
	r.done <- r.do(ctx)
	return nil
}

// Sync looks at the disk now and proposes what differs from the head, after this node has caught up with it.
func (s *Store) Sync(ctx context.Context, opts SyncOptions) (SyncResult, error) {
	var res SyncResult
	if opts.Env != "" && !slices.ContainsFunc(s.cfg.Slots, func(slot Slot) bool { return slot.Name.Env == opts.Env }) {
		return res, fmt.Errorf("%w: %q", ErrNoEnv, opts.Env)
	}
	if opts.DryRun && opts.Accept != "" {
		return res, ErrAcceptDry
	}
	if err := s.awaitReady(ctx); err != nil {
		return res, err
	}
	err := s.inLoop(ctx, func(ctx context.Context) (err error) {
		if opts.Accept != "" {
			if _, err := s.replacedIn(ctx, opts.Accept); err != nil {
				return err
			}
			s.accepted = filepath.Clean(opts.Accept)
			defer func() { s.accepted, s.dirty = "", true }() // whatever came of it: the next look is without it
		}
		for range maxPasses {
			s.dirty = true
			if err = s.catchUp(ctx); err == nil {
				res, err = s.proposeEdits(ctx, opts)
			}
			if !errors.Is(err, ErrNotCurrent) && !errors.Is(err, errHeadMoved) {
				return err
			}
			if errors.Is(err, ErrNotCurrent) && !s.awaitHead(ctx) {
				return err
			}
		}
		return err
	})
	return res, err
}

// awaitReady waits for the log: a process that has just been started, or has taken over, finds the cluster within
// moments.
func (s *Store) awaitReady(ctx context.Context) error {
	if s.run == nil {
		return ErrOff
	}
	const often = 20 * time.Millisecond
	for began := time.Now(); !s.cfg.Log.Ready(); {
		if time.Since(began) > s.cfg.Timing.Ready {
			return fmt.Errorf("%w: this node does not have the roots of the cluster yet", ErrNoQuorum)
		}
		select {
		case <-time.After(often):
		case <-ctx.Done():
			return fmt.Errorf("wait for the cluster: %w", context.Cause(ctx))
		case <-s.run.Done():
			return errors.New("closing")
		}
	}
	return nil
}
