package localmaster

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// ErrSessionID: the id cannot be a file name in the sessions directory.
var ErrSessionID = errors.New("localmaster: id cannot name a session file")

const (
	// sessionAhead is how far in the future a session file is dated, so that no worker takes it for expired
	// (salt/channel/server.py:ReqServerChannel.session_key compares with publish_session). Below 2038 for old disks.
	sessionAhead = 5 * 365 * 24 * time.Hour
	// sessionRefresh: one that is left with less is dated anew.
	sessionRefresh = sessionAhead / 5

	sessionStripes = 64
)

// SessionsOptions configures Sessions.
type SessionsOptions struct {
	CacheDir       string        // the master's cachedir
	User           string        // its user; names the root key file, by which a restart of a 3006 master is noticed
	Version        Version       // of the master
	PublishSession time.Duration // its option publish_session (24 h)
	Owner          Owner         // of the files
	MaxIDs         int           // ids remembered in memory (100,000)
	Logger         *slog.Logger
	Now            func() time.Time // for tests
}

// SessionsOf returns the options for the master of cfg.
func SessionsOf(cfg *Config) (SessionsOptions, error) {
	owner, err := cfg.Owner()
	return SessionsOptions{
		CacheDir: cfg.CacheDir, User: cfg.User, Version: cfg.Version, Owner: owner,
		PublishSession: time.Duration(cfg.Int("publish_session")) * time.Second,
	}, err
}

// Sessions provides the master with the session key of each minion before its first request is forwarded: the file
// cachedir/sessions/<id>, 76 characters, 0600, dated in the future. Workers of late 3007 and 3008 releases
// (Version.RereadsSessions) look at the file's date on each use, so that it can be replaced at any time; any other that
// has read it keeps what it read for publish_session, so there a file of another content is only replaced when no
// worker can have it in memory.
type Sessions struct {
	o       SessionsOptions
	seed    maphash.Seed
	stripes [sessionStripes]stripe
}

// stripe is a part of the ids, by hash.
type stripe struct {
	mu  sync.RWMutex
	ids map[string]session
}

// session is what is known of one id.
type session struct {
	want, local saltcrypt.Key
	life        masterLife // 3006: the life of the master in which local was found and left alone
	own         ownKey     // what was in the file before want
}

// ownKey is a session key that the master has made on its own.
type ownKey struct {
	key  saltcrypt.Key
	made time.Time
}

// NewSessions returns a Sessions over cachedir/sessions, which is created on first use.
func NewSessions(o SessionsOptions) *Sessions {
	o.PublishSession = cmp.Or(o.PublishSession, 24*time.Hour)
	o.MaxIDs = cmp.Or(o.MaxIDs, 100_000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Owner == (Owner{}) && os.Geteuid() != 0 {
		o.Owner = Unowned
	}
	s := &Sessions{o: o, seed: maphash.MakeSeed()}
	for i := range s.stripes {
		s.stripes[i].ids = map[string]session{}
	}
	return s
}

func (s *Sessions) stripeOf(id string) *stripe {
	return &s.stripes[maphash.String(s.seed, id)%sessionStripes]
}

// Ensure makes want the session key of id on the local master if that can be. local is the key the master uses;
// same tells that it is want, else the caller re-encrypts under local. It touches no disk when nothing has changed.
// Errors: ErrSessionID, and those of the disk.
func (s *Sessions) Ensure(id string, want saltcrypt.Key) (local saltcrypt.Key, same bool, err error) {
	st := s.stripeOf(id)
	st.mu.RLock()
	e, ok := st.ids[id]
	st.mu.RUnlock()
	if ok && e.want.Equal(want) && e.local.Equal(want) {
		return want, true, nil
	}
	if !validSessionID(id) {
		return saltcrypt.Key{}, false, fmt.Errorf("%w: %.60q", ErrSessionID, id)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	e, ok = st.ids[id]
	if ok && e.want.Equal(want) && (e.local.Equal(want) || e.life == s.readMasterLife()) {
		return e.local, e.local.Equal(want), nil
	}
	e, err = s.provideFile(id, want, e)
	if errors.Is(err, fs.ErrExist) { // a worker was faster
		e, err = s.provideFile(id, want, session{})
	}
	if err != nil {
		return saltcrypt.Key{}, false, fmt.Errorf("session key of %s: %w", id, err)
	}
	s.rememberID(st, id, e)
	return e.local, e.local.Equal(want), nil
}

// Own returns the session key that the master has made for id on its own and would take until then. A file that is
// dated in the future is ours.
func (s *Sessions) Own(id string) (key saltcrypt.Key, until time.Time, ok bool) {
	if !validSessionID(id) {
		return saltcrypt.Key{}, time.Time{}, false
	}
	st := s.stripeOf(id)
	st.mu.RLock()
	own := st.ids[id].own
	st.mu.RUnlock()
	if own.key.IsZero() {
		root, err := os.OpenRoot(s.sessionDir())
		if err != nil {
			return saltcrypt.Key{}, time.Time{}, false
		}
		defer root.Close()
		if own.key, own.made, err = readSession(root, id); err != nil {
			return saltcrypt.Key{}, time.Time{}, false
		}
	}
	until, now := own.made.Add(s.o.PublishSession), s.o.Now()
	return own.key, until, !own.key.IsZero() && !own.made.After(now) && now.Before(until)
}

// rememberID bounds the memory: what is forgotten is read from disk again.
func (s *Sessions) rememberID(st *stripe, id string, e session) {
	if _, known := st.ids[id]; !known && len(st.ids) >= max(1, s.o.MaxIDs/sessionStripes) {
		for victim := range st.ids {
			delete(st.ids, victim)
			break
		}
	}
	st.ids[id] = e
}

// forgetID makes the next Ensure look at the id's file again. What the master itself had put there is nowhere else. The
// lock is held.
func (st *stripe) forgetID(id string) {
	if own := st.ids[id].own; own.key.IsZero() {
		delete(st.ids, id)
	} else {
		st.ids[id] = session{own: own}
	}
}

// Reset makes the next Ensure of each id look at its file again; to be called when the master has restarted. What is
// known of the ids whose keys differ is kept, because their next Ensure notices a restart on its own.
func (s *Sessions) Reset() {
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		for id, e := range st.ids {
			if s.o.Version.RereadsSessions() || e.local.Equal(e.want) {
				st.forgetID(id)
			}
		}
		st.mu.Unlock()
	}
}

// Invalidate forgets one id: the next Ensure looks at its file again (after a "bad load" from the master, which means
// that the master, or another process, has written another key).
func (s *Sessions) Invalidate(id string) {
	st := s.stripeOf(id)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.forgetID(id)
}

// Discard removes the session file of id when it holds key: the sign-in it was made for was not accepted, so that no
// worker has read it, and whoever may sign in must not leave a file per id behind. Errors: those of the disk.
func (s *Sessions) Discard(id string, key saltcrypt.Key) error {
	if !validSessionID(id) {
		return fmt.Errorf("%w: %.60q", ErrSessionID, id)
	}
	st := s.stripeOf(id)
	st.mu.Lock()
	defer st.mu.Unlock()
	if e, ok := st.ids[id]; ok && !e.local.Equal(key) {
		return nil // of an earlier sign-in, or the master's own
	}
	delete(st.ids, id)
	if err := s.dropFile(id, key); err != nil {
		return fmt.Errorf("discard session key of %s: %w", id, err)
	}
	return nil
}

func validSessionID(id string) bool {
	return id != "" && len(id) <= 255 && id != "." && id != ".." && !strings.ContainsAny(id, "/\x00") &&
		!strings.HasPrefix(id, tempPrefix)
}

// masterLife tells one life of a master whose workers do not reread sessions from the next: it makes its root key anew
// at each start, before it forks its workers (salt/daemons/masterapi.py:mk_key).
type masterLife struct {
	inode uint64
	mtime int64
}

func (s *Sessions) readMasterLife() masterLife {
	if s.o.Version.RereadsSessions() {
		return masterLife{}
	}
	info, err := os.Lstat(filepath.Join(s.o.CacheDir, "."+s.o.User+"_key"))
	if err != nil {
		return masterLife{}
	}
	return masterLife{inodeOf(info), info.ModTime().UnixNano()}
}
