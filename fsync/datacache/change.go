package datacache

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"time"

	"saltclusterd/fsync/msgpack"
)

// ErrNotHere says that a mine is not to be changed here: the master's own code has to, and Touched or Spread be told.
var ErrNotHere = errors.New("datacache: only the master's own code can change it")

// What is changed here, and how many at a time: each is in memory several times over. Larger mines are rare, and the master's.
const (
	maxEdit    = 4 << 20
	maxEntries = 20_000
	maxEdits   = 8
	largeEdit  = 64 << 10
	maxLarge   = 1
)

// errLarge says that a mine waits for its turn with other large ones.
var errLarge = errors.New("datacache: a large mine")

// Edit decides what becomes of a mine, given the msgpack map that it is now, which must not be changed; nil: there is none. Without write
// nothing becomes of it; else then takes its place, and nil removes it. It may be called several times, as masters lock nothing: what the
// last call has said counts.
type Edit = func(now []byte) (then []byte, write bool, err error)

// Change does to a minion's mine what a master that carries out _mine, _mine_delete or _mine_flush does, and waits as Spread does until
// the other members have what came of it. Changes of one mine take turns with each other and with what peers send; a few are made at a
// time, and one of those above 64 KiB. A mine of more than 4 MiB or 20,000 entries, before or after, is not changed here, nor is one whose
// turn does not come before ctx ends. What is written survives a kill, not a power loss: as with a master nobody waits for the disk. Errors:
// ErrNotHere, edit's, the disk's; then the mine is as it was.
func (s *Store) Change(ctx context.Context, id string, edit Edit) error {
	if s.off != "" || s.cfg.Kind != Mine || !validID(id) {
		return ErrNotHere
	}
	waits, err := s.changeSoon(ctx, id, edit)
	if err != nil {
		return err
	}
	await(ctx, waits)
	return nil
}

// changeSoon waits for a place and changes a mine.
func (s *Store) changeSoon(ctx context.Context, id string, edit Edit) ([]<-chan struct{}, error) {
	waits, err := s.changeIn(ctx, s.edits, id, edit, largeEdit)
	if errors.Is(err, errLarge) {
		return s.changeIn(ctx, s.large, id, edit, maxEdit)
	}
	return waits, err
}

func (s *Store) changeIn(ctx context.Context, places chan struct{}, id string, edit Edit, limit int64) ([]<-chan struct{}, error) {
	select {
	case places <- struct{}{}:
		defer func() { <-places }()
	case <-ctx.Done():
		return nil, ErrNotHere
	}
	root, err := s.disk.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return s.change(root, id, edit, limit)
}

func (s *Store) change(root *os.Root, id string, edit Edit, limit int64) ([]<-chan struct{}, error) {
	turn := s.turns.of(id)
	turn.Lock()
	defer turn.Unlock()
	if !s.open() {
		return nil, ErrNotHere
	}
	before, _ := s.entry(id)
	err := s.edit(root, id, edit, limit)
	for again := 0; errors.Is(err, errChanged) && again < maxAgain; again++ {
		err = s.edit(root, id, edit, limit)
	}
	if err != nil {
		return nil, err
	}
	now, _ := s.entry(id)
	return s.waits(id, now.Stamp != before.Stamp), nil
}

// mine is a minion's mine while it is changed.
type mine struct {
	id, name string
	now      []byte // nil: there is none
	e        entry  // of what becomes of it, without stamp, hash and time
}

// edit makes one attempt; errChanged: the master has just written the mine itself; errLarge: it has more than limit bytes, which are not
// too many. It is the id's turn.
func (s *Store) edit(root *os.Root, id string, edit Edit, limit int64) error {
	pub, ok := s.cfg.Keys.Accepted(id)
	if !ok {
		return ErrNotHere
	}
	m := mine{id: id, name: s.layout.names(id)[0], e: entry{Key: fingerprint(pub), Life: s.cfg.Keys.Life(id)}}
	dir, err := openFolder(root, path.Dir(m.name))
	switch {
	case err == nil:
		defer dir.close()
	case errors.Is(err, fs.ErrNotExist):
		dir = folder{}
	default:
		return err
	}
	err = s.find(root, dir, &m, limit)
	switch {
	case errors.Is(err, errTooLarge) && limit < maxEdit:
		return errLarge
	case errors.Is(err, errTooLarge):
		return ErrNotHere
	case err != nil:
		return err
	case m.now == nil && s.elsewhere(root, m.name):
		return ErrNotHere
	case msgpack.Len(m.now) > maxEntries:
		return ErrNotHere
	}
	then, write, err := edit(m.now)
	switch {
	case err != nil || !write || m.now == nil && then == nil:
		return err
	case len(then) > maxEdit, msgpack.Len(then) > maxEntries:
		return ErrNotHere
	case then == nil:
		return s.unmake(root, m)
	case bytes.Equal(m.now, then):
		return s.renew(dir, m)
	}
	return s.make(root, dir, m, then)
}

// find reads a mine and brings the table up to what is on disk. It is the id's turn.
func (s *Store) find(root *os.Root, dir folder, m *mine, limit int64) error {
	var seen sight
	files := fileSet{}
	if dir.dir != nil {
		raw, is, err := dir.read(path.Base(m.name), limit)
		switch {
		case err == nil:
			files[m.name], seen = raw, is
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	files, err := s.judge(root, m.id, m.e.Key, m.e.Life, files, seen)
	if err == nil {
		m.now = files[m.name]
	}
	return err
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

// make writes a mine. It is the id's turn.
func (s *Store) make(root *os.Root, dir folder, m mine, then []byte) (err error) {
	m.e.Stamp = s.cfg.Clock.Now()
	at, files := stampTime(m.e.Stamp), fileSet{m.name: then}
	if dir.dir != nil {
		m.e.MTime, err = dir.put(s.disk, path.Base(m.name), then, m.now, at)
	} else {
		m.e.MTime, err = s.disk.put(root, m.name, then, m.now, at)
	}
	if err != nil {
		return err
	}
	m.e.Hash = files.hash()
	s.saw(m.id, sightOf(files, files, m.e.MTime)) // and not what is seen now: the master may write right after
	s.tell(m.id, m.e)
	return nil
}

// renew gives a mine that stays as it is the time at which the master would have written it again. It is the id's turn.
func (s *Store) renew(dir folder, m mine) error {
	at, files := time.Now(), fileSet{m.name: m.now}
	if err := dir.touch(path.Base(m.name), at); err != nil {
		return err
	}
	e, _ := s.entry(m.id)
	e.MTime = at.UnixNano()
	s.saw(m.id, sightOf(files, files, e.MTime))
	s.set(m.id, e)
	return nil
}

// unmake removes a mine. It is the id's turn.
func (s *Store) unmake(root *os.Root, m mine) error {
	if err := removeOld(root, m.name, m.now); err != nil {
		return err
	}
	s.unsee(m.id)
	m.e.Gone, m.e.Stamp = true, s.cfg.Clock.Now()
	s.tell(m.id, m.e)
	return nil
}
