package localmaster

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// provideFile looks at the id's file and makes it hold want where that is safe. known is what was known of the id
// before.
func (s *Sessions) provideFile(id string, want saltcrypt.Key, known session) (session, error) {
	root, err := s.openDir()
	if err != nil {
		return session{}, err
	}
	defer root.Close()
	now, life := s.o.Now(), s.readMasterLife()
	have, mtime, err := readSession(root, id)
	own := known.own
	if err == nil && !have.IsZero() && !have.Equal(want) && !mtime.After(now) {
		own = ownKey{have, mtime}
	}
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return session{}, err
	case err == nil && have.Equal(want):
		if mtime.Sub(now) < sessionRefresh {
			err = s.setDate(root, id, now, mtime)
		}
		return session{want: want, local: want, life: life, own: own}, err
	case err == nil && !s.mayReplace(have, mtime, known, life, now):
		return session{want: want, local: have, life: life, own: own}, nil
	}
	f := newFile{name: id, data: []byte(want.Text()), mode: 0o600, owner: s.o.Owner, mtime: futureDate(now, mtime)}
	f.fresh = err != nil // a worker that makes its own at this moment has read it, too
	if err := f.writeIn(root); err != nil {
		return session{}, err
	}
	return session{want: want, local: want, life: life, own: own}, nil
}

// mayReplace tells whether a file of another content may be replaced: always where workers notice that, else
// when the content is of no use, or has expired in every memory, or the master has restarted since it was left alone.
func (s *Sessions) mayReplace(have saltcrypt.Key, mtime time.Time, known session, life masterLife,
	now time.Time) bool {
	if s.o.Version.RereadsSessions() || have.IsZero() {
		return true
	}
	if now.Sub(mtime) > s.o.PublishSession {
		return true
	}
	// While an id's keys differ, each Ensure looks for a restart, so that its first request in a new life finds it.
	differed := !known.local.IsZero() && !known.local.Equal(known.want)
	return differed && known.life != masterLife{} && life != masterLife{} && known.life != life
}

func (s *Sessions) setDate(root *os.Root, id string, now, old time.Time) error {
	at := futureDate(now, old)
	return root.Chtimes(id, at, at)
}

// dropFile removes the id's file if it holds key.
func (s *Sessions) dropFile(id string, key saltcrypt.Key) error {
	root, err := s.openDir()
	if err != nil {
		return err
	}
	defer root.Close()
	have, _, err := readSession(root, id)
	if err == nil && have.Equal(key) {
		err = root.Remove(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// futureDate is the date of a session file: far in the future, and later than the one before, which is how workers
// notice.
func futureDate(now, old time.Time) time.Time {
	at := now.Add(sessionAhead)
	if !at.After(old.Add(time.Second)) {
		at = old.Add(2 * time.Second)
	}
	return at
}

// ReleaseSessions dates the session files that are dated in the future as if the master at cacheDir had made them now:
// without saltclusterd it uses their keys for another publish_session and then makes new ones, as a stock master does.
// Errors: those of the disk.
func ReleaseSessions(cacheDir string, now time.Time) error {
	root, err := os.OpenRoot(sessionsDir(cacheDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release session keys: %w", err)
	}
	defer root.Close()
	files, err := fs.ReadDir(root.FS(), ".")
	for _, f := range files {
		info, ierr := f.Info()
		if ierr == nil && info.Mode().IsRegular() && info.ModTime().After(now) {
			ierr = root.Chtimes(f.Name(), now, now)
		}
		if !errors.Is(ierr, fs.ErrNotExist) { // the master, or the minion's key, has gone its way
			err = errors.Join(err, ierr)
		}
	}
	if err != nil {
		return fmt.Errorf("release session keys: %w", err)
	}
	return nil
}

// Leave gives each minion's file the key that the minion has, dated as if the master had made it now: for a master that
// is restarted and then has no saltclusterd in front of it. Until the restart its workers may have other keys in
// memory, so no request may reach it meanwhile. The files of ids that this process has not heard of stay as they are.
// Errors: those of the disk.
func (s *Sessions) Leave() error {
	root, err := os.OpenRoot(s.sessionDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("leave session keys: %w", err)
	}
	defer root.Close()
	now := s.o.Now()
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for id, e := range st.ids {
			err = errors.Join(err, s.leaveKey(root, id, e.want, now))
			delete(st.ids, id)
		}
		st.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("leave session keys: %w", err)
	}
	return nil
}

func (s *Sessions) leaveKey(root *os.Root, id string, want saltcrypt.Key, now time.Time) error {
	have, mtime, err := readSession(root, id)
	switch {
	case want.IsZero() || errors.Is(err, fs.ErrNotExist): // only the master's own is known of it; its key was deleted
		return nil
	case err != nil:
		return err
	case have.Equal(want) && mtime.After(now):
		return root.Chtimes(id, now, now)
	case have.Equal(want):
		return nil
	}
	return newFile{name: id, data: []byte(want.Text()), mode: 0o600, owner: s.o.Owner, mtime: now}.writeIn(root)
}

func sessionsDir(cacheDir string) string { return filepath.Join(cacheDir, "sessions") }

func (s *Sessions) sessionDir() string { return sessionsDir(s.o.CacheDir) }

func (s *Sessions) openDir() (*os.Root, error) {
	dir := s.sessionDir()
	root, err := os.OpenRoot(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if s.o.Owner != Unowned {
		if err := os.Chown(dir, s.o.Owner.UID, s.o.Owner.GID); err != nil {
			return nil, err
		}
	}
	return os.OpenRoot(dir)
}

// readSession returns the key in an id's file, the zero key when there is something else in it.
func readSession(root *os.Root, id string) (saltcrypt.Key, time.Time, error) {
	info, err := root.Lstat(id)
	if err != nil {
		return saltcrypt.Key{}, time.Time{}, err
	}
	if !info.Mode().IsRegular() { // a symlink, say: not Salt's, replaced
		return saltcrypt.Key{}, info.ModTime(), nil
	}
	f, err := root.OpenFile(id, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return saltcrypt.Key{}, time.Time{}, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 128))
	if err != nil {
		return saltcrypt.Key{}, time.Time{}, err
	}
	key, err := saltcrypt.ParseKey(string(text))
	if err != nil {
		return saltcrypt.Key{}, info.ModTime(), nil
	}
	return key, info.ModTime(), nil
}

func inodeOf(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}
