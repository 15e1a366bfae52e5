package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/fsync/chunk"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// readAll reads the files that have changed.
func (s *scanner) readAll() error {
	if len(s.pending) == 0 {
		return nil
	}
	s.res.Read = len(s.pending)
	var mu sync.Mutex // guards the result
	next := make(chan *node)
	g, ctx := errgroup.WithContext(s.ctx)
	for range min(max(s.opts.Workers, 1), len(s.pending)) {
		g.Go(func() error {
			cut := chunk.NewCutter()
			for n := range next {
				item, err := s.readFile(cut, n)
				mu.Lock()
				err = s.enterFile(n, item, err)
				mu.Unlock()
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(next)
		for _, n := range s.pending {
			select {
			case next <- n:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return g.Wait()
}

// enterFile enters what was read of a file.
func (s *scanner) enterFile(n *node, item *Item, err error) error {
	switch {
	case err == nil:
		name := n.entry.Name
		n.entry = item.treeEntry()
		n.entry.Name, n.stat = name, item.Stat
		s.res.Index[n.path] = item
		return nil
	case errors.Is(err, errUnsettled):
		s.res.Changing = n.path
		return s.asKnown(n)
	case slotfs.Gone(err), errors.Is(err, slotfs.ErrNotFile):
		return s.asKnown(n)
	case errors.Is(err, chunk.ErrTooLarge):
		s.addProblem(n.path, err)
		unsettled := s.res.Unsettled
		err = s.asKnown(n)
		s.res.Unsettled = unsettled // to look again soon is of no use
		return err
	}
	return fmt.Errorf("scan %q: %w", n.path, err)
}

// errUnsettled says that a file changed while it was read.
var errUnsettled = errors.New("changing")

// readFile reads one file; twice when it changes.
func (s *scanner) readFile(cut *chunk.Cutter, n *node) (item *Item, err error) {
	for range 2 {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		if item, err = File(s.ctx, s.root, n.path, cut); !errors.Is(err, errUnsettled) {
			if err == nil && s.opts.Keep != nil && cut.Whole() != nil {
				s.opts.Keep(item.Chunks[0].Hash, cut.Whole())
			}
			return item, err
		}
	}
	return nil, err
}

// File reads the file at a path below a directory.
func File(ctx context.Context, root *slotfs.Dir, path string, cut *chunk.Cutter) (*Item, error) {
	dir, name, err := root.Parent(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, before, err := dir.File(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if before.Size > tree.MaxFile {
		return nil, chunk.ErrTooLarge
	}
	chunks, err := cut.Cut(until{ctx, f})
	if err != nil {
		return nil, err
	}
	now := time.Now()
	after, err := dir.Stat(name)
	if err != nil {
		return nil, err
	}
	item := &Item{Stat: after, Chunks: chunks, Racy: isRacy(after, now)}
	if e := item.treeEntry(); after != before || e.Size() != after.Size {
		return nil, errUnsettled
	}
	return item, nil
}

// until reads until its context ends: a large file takes a while.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}
