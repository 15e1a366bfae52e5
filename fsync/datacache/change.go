package datacache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/fsync/msgpack"
)

// ErrNotHere says that a mine is not to be changed here: the master's own code has to, and Touched or Spread be told.
var ErrNotHere = errors.New("datacache: only the master's own code can change it")

// Limits of the mines that are changed here, and of how many are changed at a time: each is in memory several times
// over. Larger mines are rare, and left to the master.
const (
	maxEdit    = 4 << 20
	maxEntries = 20_000
	maxEdits   = 8 // up to largeFile
	maxLarge   = 1
)

// errLarge says that a mine waits for its turn with other large ones. Whether it becomes one only its edit can tell:
// what that has made, no more than a small mine and a request, is dropped then, and made again when it is its turn.
var errLarge = errors.New("datacache: a large mine")

// Edit decides what becomes of a mine, given the msgpack map that it is now, which must not be changed; nil: there is
// none. Without write nothing becomes of it; else then takes its place, and nil removes it. It may be called several
// times, as masters lock nothing: what the last call has said counts.
type Edit = func(now []byte) (then []byte, write bool, err error)

// Change does to a minion's mine what a master that carries out _mine, _mine_delete or _mine_flush does, and waits as
// Spread does, for settle at most, until the other members have what came of it. Changes of one mine take turns with
// each other and with what peers send; a few are made at a time, and one of those above 64 KiB. A mine of more than 4
// MiB or 20,000 entries, before or after, is not changed here. A change survives a kill, not a power loss: as with a
// master, it does not wait for the disk. Errors: ErrNotHere, edit's, the disk's, ctx's if it ends before the mine's
// turn comes; then the mine is as it was.
func (s *Store) Change(ctx context.Context, id string, edit Edit, settle time.Duration) error {
	if s.cfg.Kind != Mine || s.Off() != "" || !validID(id) {
		return ErrNotHere
	}
	waits, err := s.changeSoon(ctx, id, edit)
	if err != nil || len(waits) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	await(ctx, waits)
	return nil
}

// changeSoon waits for the id's turn and a place, and changes a mine. Changes of small mines take the turn first: one
// that has a place waits for nothing more, and those that wait for the same mine do not keep places from others. There
// is one place for large mines. A change that waits for it does not hold the turn, because other ids share that.
func (s *Store) changeSoon(ctx context.Context, id string, edit Edit) ([]<-chan struct{}, error) {
	turn := s.turns.of(id)
	waits, err := s.changeWith(ctx, turn, s.edits, id, edit, largeFile)
	if errors.Is(err, errLarge) {
		return s.changeWith(ctx, s.large, turn, id, edit, maxEdit)
	}
	return waits, err
}

// changeWith changes a mine when it has got one and then the other.
func (s *Store) changeWith(ctx context.Context, one, other chan struct{}, id string, edit Edit,
	limit int64) ([]<-chan struct{}, error) {
	if err := s.queue(ctx, one, other); err != nil {
		return nil, fmt.Errorf("wait to change the mine of %s: %w", id, err)
	}
	defer func() { <-other; <-one }()
	root, err := s.disk.root()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return s.change(root, id, edit, limit)
}

func (s *Store) queue(ctx context.Context, one, other chan struct{}) error {
	s.metrics.waiting.Inc()
	defer s.metrics.waiting.Dec()
	if err := take(ctx, one); err != nil {
		return err
	}
	if err := take(ctx, other); err != nil {
		<-one
		return err
	}
	return nil
}

// change changes a mine. It is the id's turn.
func (s *Store) change(root *os.Root, id string, edit Edit, limit int64) ([]<-chan struct{}, error) {
	if !s.Serves() {
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
	was      inode  // of now
	seen     sight  // of now, which is open
	e        entry  // of what becomes of it, without stamp, hash and time
}

// edit makes one attempt; errChanged: the master has just written the mine itself; errLarge: it has more than limit
// bytes, which are not too many. It is the id's turn.
func (s *Store) edit(root *os.Root, id string, edit Edit, limit int64) error {
	life := s.cfg.Keys.Life(id) // before the key, or it may be that of the next one
	pub, ok := s.cfg.Keys.Accepted(id)
	if !ok {
		return ErrNotHere
	}
	m := mine{id: id, name: s.layout.names(id)[0], e: entry{Key: fingerprint(pub), Life: life}}
	dir, err := openFolder(root, path.Dir(m.name))
	switch {
	case err == nil:
		defer dir.close()
	case errors.Is(err, fs.ErrNotExist):
		dir = folder{}
	default:
		return err
	}
	done, err := s.find(root, dir, &m, limit)
	defer done()
	switch {
	case errors.Is(err, unix.ELOOP): // the master follows links
		return ErrNotHere
	case errors.Is(err, errTooLarge) && limit < maxEdit:
		return errLarge
	case errors.Is(err, errTooLarge):
		return ErrNotHere
	case err != nil:
		return err
	case m.now == nil && s.isShadowed(root, m.name):
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
	case int64(len(then)) > limit:
		return errLarge
	case then == nil:
		return s.unmake(root, m)
	case m.now != nil && bytes.Equal(m.now, then):
		return s.renew(dir, m)
	}
	return s.make(root, dir, m, then)
}

// find reads a mine and brings the table up to what is on disk. Until done no other file gets the mine's inode. It is
// the id's turn.
func (s *Store) find(root *os.Root, dir folder, m *mine, limit int64) (done func(), err error) {
	done = func() {}
	files := fileSet{}
	if dir.dir != nil {
		is, err := dir.hold(path.Base(m.name), limit)
		switch {
		case err == nil:
			done, files[m.name], m.seen, m.was = is.close, is.raw, is.is, is.inode
		case !errors.Is(err, fs.ErrNotExist):
			return done, err
		}
	}
	files, err = s.judge(root, m.id, m.e.Key, m.e.Life, files, m.seen)
	if err == nil {
		m.now = files[m.name]
	}
	return done, err
}

// isShadowed says whether the master finds a mine that is not a map, or a bank that is one file (salt/cache/localfs.py
// fetch).
func (s *Store) isShadowed(root *os.Root, name string) bool {
	for _, name := range []string{name, path.Dir(name) + suffix} {
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// make writes a mine. It is the id's turn.
func (s *Store) make(root *os.Root, dir folder, m mine, then []byte) (err error) {
	former, had := s.entry(m.id)
	m.e.Stamp = s.after(former.Stamp)
	at := stampTime(m.e.Stamp)
	var is sight
	if dir.dir != nil {
		is, err = dir.put(s.disk, path.Base(m.name), then, prior{m.now, m.seen}, at)
	} else {
		is, err = s.disk.put(root, m.name, then, m.now, at)
	}
	if err != nil {
		return err
	}
	m.e.Hash, m.e.MTime = fileSet{m.name: then}.hash(), is.mtime
	s.saw(m.id, is) // and not what is seen now: the master may write right after
	s.tell(m.id, m.e)
	_, err = s.recheck(root, m.id, had)
	return err
}

// renew gives a mine that stays as it is the time at which the master would have written it again. That is news: an
// operator may have cleared it on another master since, who has not seen that yet. It is the id's turn.
func (s *Store) renew(dir folder, m mine) error {
	mtime, err := dir.renew(path.Base(m.name), m.was, time.Now())
	if err != nil {
		return err
	}
	e, _ := s.entry(m.id)
	e.Stamp, e.MTime = s.after(e.Stamp), mtime
	s.saw(m.id, sightOf(m.was, mtime, int64(len(m.now))))
	s.tell(m.id, e)
	return nil
}

// unmake removes a mine. It is the id's turn.
func (s *Store) unmake(root *os.Root, m mine) error {
	if err := removeOld(root, m.name, m.now); err != nil {
		return err
	}
	s.unsee(m.id)
	former, _ := s.entry(m.id)
	m.e.Gone, m.e.Stamp = true, s.after(former.Stamp)
	s.tell(m.id, m.e)
	return nil
}
