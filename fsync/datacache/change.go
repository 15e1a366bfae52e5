package datacache

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path"
	"time"

	"saltclusterd/fsync/msgpack"
)

// ErrNotHere says that a mine is not to be changed here: the master's own code has to, and Touched or Spread be told.
var ErrNotHere = errors.New("datacache: only the master's own code can change it")

// What is changed here: all other mines wait meanwhile, and the master changes larger ones, which are rare, in its own time.
const (
	maxEdit    = 1 << 20
	maxEntries = 10_000
)

// Edit decides what becomes of a mine, given the msgpack map that it is now, which must not be changed; nil: there is none. Without write
// nothing becomes of it; else then takes its place, and nil removes it. It may be called several times, as masters lock nothing: what the
// last call has said counts.
type Edit = func(now []byte) (then []byte, write bool, err error)

// Change does to a minion's mine what a master that carries out _mine, _mine_delete or _mine_flush does, and waits as Spread does until
// the other members have what came of it. Changes take turns with each other and with what peers send. A mine of more than 1 MiB or
// 10,000 entries, before or after, is not changed here. What is written survives a kill, not a power loss: as with a master nobody waits
// for the disk, which would hold the lock meanwhile. Errors: ErrNotHere, edit's, the disk's; then the mine is as it was.
func (s *Store) Change(ctx context.Context, id string, edit Edit) error {
	if s.off != "" || s.cfg.Kind != Mine || !validID(id) {
		return ErrNotHere
	}
	root, err := s.disk.root()
	if err != nil {
		return err
	}
	defer root.Close()
	waits, err := s.change(root, id, edit)
	if err != nil {
		return err
	}
	await(ctx, waits)
	return nil
}

func (s *Store) change(root *os.Root, id string, edit Edit) ([]<-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil || s.run.Err() != nil || !s.scanned {
		return nil, ErrNotHere
	}
	before := s.table[id].Stamp
	err := s.edit(root, id, edit)
	for again := 0; errors.Is(err, errChanged) && again < maxAgain; again++ {
		err = s.edit(root, id, edit)
	}
	if err != nil {
		return nil, err
	}
	return s.waits(id, s.table[id].Stamp != before), nil
}

// edit makes one attempt; errChanged: the master has just written the mine itself. s.mu is held.
func (s *Store) edit(root *os.Root, id string, edit Edit) error {
	pub, ok := s.cfg.Keys.Accepted(id)
	if !ok {
		return ErrNotHere
	}
	names := s.layout.names(id)
	if look(root, names).size > maxEdit {
		return ErrNotHere
	}
	files, err := s.observe(root, id, false)
	if err != nil {
		return err
	}
	name := names[0]
	now, there := files[name]
	if !there && s.elsewhere(root, name) {
		return ErrNotHere
	}
	if msgpack.Len(now) > maxEntries {
		return ErrNotHere
	}
	then, write, err := edit(now)
	e := entry{Key: fingerprint(pub), Life: s.cfg.Keys.Life(id)}
	switch {
	case err != nil || !write || !there && then == nil:
		return err
	case len(then) > maxEdit, msgpack.Len(then) > maxEntries:
		return ErrNotHere
	case then == nil:
		return s.unmake(root, id, name, now, e)
	case there && bytes.Equal(now, then):
		return s.renew(root, id, name, now)
	}
	return s.make(root, id, name, then, now, e)
}

// elsewhere says whether the master finds a mine that is no map, or a bank that is one file (salt/cache/localfs.py fetch).
func (s *Store) elsewhere(root *os.Root, name string) bool {
	for _, name := range []string{name, path.Dir(name) + suffix} {
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// make writes a mine. s.mu is held.
func (s *Store) make(root *os.Root, id, name string, then, now []byte, e entry) error {
	e.Stamp = s.cfg.Clock.Now()
	at, files := stampTime(e.Stamp), fileSet{name: then}
	if err := s.disk.put(root, name, then, now, at); err != nil {
		return err
	}
	e.Hash, e.MTime = files.hash(), look(root, []string{name}).mtime
	s.seen[id] = sightOf(files, files, at) // and not what is seen now: the master may write right after
	s.tell(id, e)
	return nil
}

// renew gives a mine that stays as it is the time at which the master would have written it again. s.mu is held.
func (s *Store) renew(root *os.Root, id, name string, now []byte) error {
	at, files := time.Now(), fileSet{name: now}
	if err := root.Chtimes(name, at, at); err != nil {
		return err
	}
	e := s.table[id]
	e.MTime = at.UnixNano()
	s.seen[id] = sightOf(files, files, at)
	s.set(id, e)
	return nil
}

// unmake removes a mine. s.mu is held.
func (s *Store) unmake(root *os.Root, id, name string, now []byte, e entry) error {
	if err := removeOld(root, name, now); err != nil {
		return err
	}
	delete(s.seen, id)
	e.Gone, e.Stamp = true, s.cfg.Clock.Now()
	s.tell(id, e)
	return nil
}
