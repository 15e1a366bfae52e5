package localmaster

import (
	"errors"
	"log/slog"

	"saltclusterd/sidecar/saltcrypt"
)

// ErrSessionID: the id cannot be a file name in the sessions directory.
var ErrSessionID = errors.New("localmaster: id cannot name a session file")

// SessionsOptions configures Sessions.
type SessionsOptions struct {
	CacheDir string // the master's cachedir
	Version  Version
	UID, GID int // owner of the files, -1: leave as created
	MaxIDs   int // ids remembered in memory (100,000)
	Logger   *slog.Logger
}

// Sessions provides the master with the session key of each minion before its first request is forwarded.
type Sessions struct{ o SessionsOptions }

// NewSessions returns a Sessions over cachedir/sessions, which is created on first use.
func NewSessions(o SessionsOptions) *Sessions { return &Sessions{o: o} }

// Ensure makes want the session key of id on the local master if that can be. local is the key the master uses;
// same tells that it is want, else the caller re-encrypts under local. Cheap when nothing changed.
func (s *Sessions) Ensure(id string, want saltcrypt.Key) (local saltcrypt.Key, same bool, err error) {
	return want, true, nil
}

// Reset forgets what the master's workers may have cached; to be called when the master has restarted.
func (s *Sessions) Reset() {}

// Invalidate forgets one id: the next Ensure looks at the file again (after a "bad load" from the master).
func (s *Sessions) Invalidate(id string) {}
