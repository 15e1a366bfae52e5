package tokens

import (
	"cmp"
	"fmt"
	"time"

	"saltclusterd/fsync/replica"
)

// Master is what the stock master's configuration says about its tokens.
type Master struct {
	Major    int    // 3006, 3007, 3008
	CacheDir string // cachedir; tokens lie below it in every version
	// UID and GID are whose files they are; -1 leaves them as created.
	UID, GID int

	Store  string // eauth_tokens (3006, 3007)
	Driver string // eauth_tokens.cache_driver, or cache when that is not set (3008)
	Shared bool   // the masters have these tokens in common
}

// localfs is the one store whose tokens this package can carry: others share them by themselves.
const localfs = "localfs"

// bankSince is the first version that keeps tokens in a bank of its cache.
const bankSince = 3008

// reasonOff says why nothing is carried; empty when it is.
func (m Master) reasonOff() string {
	switch {
	case m.Shared:
		return "the masters share a file system"
	case m.Major < bankSince && m.Store != localfs:
		return fmt.Sprintf("the master has eauth_tokens: %s; only localfs is replicated", m.Store)
	case m.Major >= bankSince && m.Driver != localfs:
		return fmt.Sprintf("the master keeps tokens with the cache driver %s; only localfs is replicated", m.Driver)
	}
	return ""
}

// Config is what a Store needs.
type Config struct {
	replica.Config
	Master Master
	Timing Timing // zero fields: defaults
}

// Timing is how often the directory is read.
type Timing struct {
	Debounce time.Duration // from a hint to a scan; 10 ms
	Scan     time.Duration // between scans without a hint; 5 s
	// between looks at what the files of known tokens hold, where they are many; a minute, and after a start
	Check time.Duration
	Gone  time.Duration // how long a file must be gone to be revoked: its directory may be about to go; 200 ms
}

// pace is that of the package.
var pace = replica.Pace{Settle: 10 * time.Millisecond, Save: time.Second}

func (t Timing) withDefaults() Timing {
	t.Debounce = cmp.Or(t.Debounce, 10*time.Millisecond)
	t.Scan = cmp.Or(t.Scan, 5*time.Second)
	t.Check = cmp.Or(t.Check, time.Minute)
	t.Gone = cmp.Or(t.Gone, 200*time.Millisecond)
	return t
}
