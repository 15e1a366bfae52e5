package roots

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"runtime"
	"time"

	"saltclusterd/fsync/apply"
	"saltclusterd/fsync/scan"
	"saltclusterd/fsync/slotfs"
	"saltclusterd/fsync/tree"
)

// dirIdent tells a slot's directory from another one at the same path.
type dirIdent struct{ Dev, Ino uint64 }

// scanAll scans all slots. It fails only when it is told to stop: a slot that cannot be scanned is unavailable.
func (s *Store) scanAll(ctx context.Context) error {
	began := time.Now()
	s.phase(PhaseScan)
	s.watchAgain()
	files := 0
	order := s.order(ctx)
	for _, st := range s.slots {
		if reason := order[st.Name]; reason != "" && ctx.Err() == nil {
			s.noteScan(st, nil, dirIdent{}, errors.New(reason))
			continue
		}
		res, ident, err := s.scanSlot(ctx, st)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.noteScan(st, res, ident, err)
		s.findArea(st)
		files += st.files
	}
	err := s.noteLive()
	if errors.Is(err, tree.ErrNoObject) { // a database that was restored; others have it
		if err = s.fetchObjects(ctx, "", s.base.Root, true); err == nil {
			err = s.noteLive()
		}
	}
	if err != nil {
		return err
	}
	took := time.Since(began)
	s.metrics.scans.Observe(took.Seconds())
	s.metrics.files.Set(float64(files))
	s.mu.Lock()
	s.lastScan, s.scanTook = began, took
	s.mu.Unlock()
	s.dirty = false
	return nil
}

// noteLive makes the tree of what the scans have seen.
func (s *Store) noteLive() error {
	root, objects, err := s.liveTree()
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.liveRoot, s.live = root, objects
	s.mu.Unlock()
	return nil
}

// order asks which slots are to be left alone.
func (s *Store) order(ctx context.Context) map[SlotName]string {
	if s.cfg.Order == nil {
		return nil
	}
	s.ordered = s.cfg.Order(ctx)
	return s.ordered
}

// reordered says whether other slots than at the last look are to be left alone.
func (s *Store) reordered(ctx context.Context) bool {
	return s.cfg.Order != nil && !s.lastScan.IsZero() && !maps.Equal(s.ordered, s.cfg.Order(ctx))
}

func (s *Store) scanSlot(ctx context.Context, st *slotState) (*scan.Result, dirIdent, error) {
	dir, err := slotfs.Open(st.Dir)
	if err != nil {
		return nil, dirIdent{}, err
	}
	defer dir.Close()
	self, err := dir.Self()
	if err != nil {
		return nil, dirIdent{}, err
	}
	known := s.base.Slots[st.Name]
	var keep func(Hash, []byte)
	if len(st.index) > 0 { // not of a first look, at everything
		keep = s.recent.add
	}
	res, err := scan.Slot(ctx, dir, scan.Options{
		Keep: keep, Ignore: s.ignore, Last: st.index, Workers: min(runtime.GOMAXPROCS(0), 4),
		Known: func(path string) *tree.Entry { return tree.Lookup(s.db, known, path) },
		Enter: func(path string) { s.watch(st.Dir, path) },
	})
	return res, dirIdent{self.Dev + s.hooks.device, self.Ino}, err
}

// identOf tells which directory a slot has now; the zero value when there is none.
func (s *Store) identOf(st *slotState) dirIdent {
	dir, err := slotfs.Open(st.Dir)
	if err != nil {
		return dirIdent{}
	}
	defer dir.Close()
	self, err := dir.Self()
	if err != nil {
		return dirIdent{}
	}
	return dirIdent{self.Dev + s.hooks.device, self.Ino}
}

// noteScan enters what a scan has found.
func (s *Store) noteScan(st *slotState, res *scan.Result, ident dirIdent, err error) {
	if err == nil && st.Dir != s.accepted {
		err = s.replaced(st, res, ident)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.replaced, st.seen = errors.Is(err, errEmptied) || errors.Is(err, errStrange), ident
	if err != nil {
		if st.unavailable == "" {
			s.log.Warn("slot unavailable; its part of the tree stays as it is", "path", st.Dir, "err", err)
		}
		st.unavailable, st.missing = err.Error(), errors.Is(err, fs.ErrNotExist)
		return
	}
	if res.Read > 0 || len(res.Index) != len(st.index) {
		st.unsaved = true
	}
	if st.dir != res.Dir || res.Read > 0 {
		s.located = nil
	}
	st.unavailable, st.missing, st.ident = "", false, ident
	st.index, st.dir, st.objects = res.Index, res.Dir, res.Objects
	st.files, st.bytes, st.problems, st.changing = res.Files, res.Bytes, res.Problems, res.Changing
	switch {
	case !res.Unsettled:
		st.restlessAt = time.Time{}
	case st.restlessAt.IsZero():
		st.restlessAt = time.Now()
	}
}

// findArea notes where what was displaced by earlier runs is.
func (s *Store) findArea(st *slotState) {
	if st.area != "" || st.unavailable != "" || len(s.kept[st.Name]) == 0 {
		return
	}
	a, err := apply.OpenArea(s.cfg.StateDir, st.Name, st.Dir)
	if err != nil {
		s.log.Warn("displaced content not found", "path", st.Dir, "err", err)
		return
	}
	defer a.Close()
	s.mu.Lock()
	st.area, s.located = a.Path, nil
	s.mu.Unlock()
}

// liveTree makes the root of what is live. A slot that is unavailable, or not configured here, is as the base has it.
func (s *Store) liveTree() (Hash, tree.Memory, error) {
	root, err := tree.ReadRoot(s.db, s.base.Root)
	if err != nil {
		return Hash{}, nil, err
	}
	for _, st := range s.slots {
		if st.unavailable == "" {
			root[st.Name] = st.dir
		}
	}
	objects := tree.Memory{}
	h, err := objects.PutRoot(root)
	return h, objects, err
}

// Object implements tree.Objects: what is live, and what the database has.
func (s *Store) Object(h Hash) ([]byte, error) {
	s.mu.Lock()
	if o, ok := s.live[h]; ok {
		s.mu.Unlock()
		return o, nil
	}
	for _, st := range s.slots {
		if o, ok := st.objects[h]; ok {
			s.mu.Unlock()
			return o, nil
		}
	}
	s.mu.Unlock()
	return s.db.Object(h)
}
