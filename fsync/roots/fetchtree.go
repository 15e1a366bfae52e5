package roots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"saltclusterd/fsync/tree"
	"saltclusterd/gossip/node"
)

// maxObjects bounds the directories of a tree, maxTreeBytes what they take.
const (
	maxObjects   = 300_000
	maxTreeBytes = 64 << 20
)

// fetchTree gets the objects of a revision that are not here.
func (s *Store) fetchTree(ctx context.Context, rev Revision, all bool) error {
	if !all && rev.Root == s.base.Root {
		return nil
	}
	if rev.Root == s.liveRoot { // it is on the disk already: what names it has to outlast the next scan
		return s.putLive()
	}
	ctx, cancel := s.whileHead(ctx, rev)
	defer cancel()
	err := s.fetchObjects(ctx, rev.Author, rev.Root, all)
	if errors.Is(context.Cause(ctx), errHeadMoved) {
		return errHeadMoved
	}
	return err
}

// fetchObjects gets the objects of a tree that are not here, level by level. Everything that an object on this node
// leads to is here as well, because objects are stored when their tree is complete; all says not to rely on that.
func (s *Store) fetchObjects(ctx context.Context, author node.ID, root Hash, all bool) error {
	got, level, isRoot, total := tree.Memory{}, []Hash{root}, true, 0
	seen := map[Hash]bool{root: true}
	for depth := 0; len(level) > 0; depth++ {
		if total += len(level); depth > tree.MaxDepth+1 || total > maxObjects {
			return fmt.Errorf("%w: %d directories", tree.ErrTooLarge, total)
		}
		fetched, err := s.objects(ctx, author, level, isRoot)
		if err != nil {
			return err
		}
		maps.Copy(got, fetched)
		var next []Hash
		for _, h := range level {
			if _, ok := fetched[h]; !ok && !all {
				continue
			}
			below, err := s.children(fetched, h, isRoot)
			if err != nil {
				return err
			}
			for _, c := range below {
				if !seen[c] {
					seen[c] = true
					next = append(next, c)
				}
			}
		}
		level, isRoot = next, false
	}
	if err := s.counted(got, root); errors.Is(err, tree.ErrNoObject) && !all {
		return s.fetchObjects(ctx, author, root, true)
	} else if err != nil {
		return err
	}
	if err := s.putLive(); err != nil { // part of what was not fetched
		return err
	}
	return s.db.putObjects(got)
}

// counted refuses a tree with more paths than a scan lists.
func (s *Store) counted(got tree.Memory, root Hash) error {
	s.extents.Lock()
	defer s.extents.Unlock()
	return s.extents.Slots(tree.Both{First: got, Second: s}, root)
}

// objects fetches those of a level that are not here, and checks that they can be decoded.
func (s *Store) objects(ctx context.Context, author node.ID, level []Hash, isRoot bool) (tree.Memory, error) {
	var wants []tree.Chunk
	for _, h := range level {
		if _, err := s.Object(h); err != nil {
			wants = append(wants, tree.Chunk{Hash: h})
		}
	}
	if len(wants) == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	fetched, size := tree.Memory{}, 0
	err := s.transfer.Fetch(ctx, author, wants, func(h Hash, b []byte) error {
		if err := checkObject(b, isRoot); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if size += len(b); size > maxTreeBytes {
			return fmt.Errorf("%w: the objects of a tree", tree.ErrTooLarge)
		}
		fetched[h] = append([]byte(nil), b...)
		return nil
	})
	return fetched, err
}

func checkObject(b []byte, isRoot bool) (err error) {
	if isRoot {
		_, err = tree.DecodeRoot(b)
	} else {
		_, err = tree.DecodeDir(b)
	}
	return err
}

// children lists the directories in an object.
func (s *Store) children(fetched tree.Memory, h Hash, isRoot bool) ([]Hash, error) {
	o := tree.Both{First: fetched, Second: s}
	var out []Hash
	if isRoot {
		root, err := tree.ReadRoot(o, h)
		for _, dir := range root {
			out = append(out, dir)
		}
		return out, err
	}
	entries, err := tree.ReadDir(o, h)
	for i := range entries {
		if entries[i].Type == tree.Dir {
			out = append(out, entries[i].Object)
		}
	}
	return out, err
}

// whileHead ends a context when a newer revision comes, unless that has been so too often.
func (s *Store) whileHead(ctx context.Context, head Revision) (context.Context, context.CancelFunc) {
	if s.insists() {
		return context.WithCancel(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	changed := s.cfg.Log.Changed(ctx)
	s.wg.Go(func() {
		for {
			if s.movedOn(head) {
				cancel(errHeadMoved)
			}
			select {
			case <-ctx.Done():
				return
			case _, ok := <-changed:
				if !ok {
					return
				}
			}
		}
	})
	return ctx, func() { cancel(nil) }
}
