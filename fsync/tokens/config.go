package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
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

// off says why nothing is carried; empty when it is.
func (m Master) off() string {
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

// Peers sends a body to POST Path of another member.
type Peers interface {
	Push(ctx context.Context, to node.ID, body []byte) error
}

// Config is what a Store needs. Registerer may be nil.
type Config struct {
	Master   Master
	StateDir string           // for the table
	Members  func() []node.ID // the other members that have a master
	// Changed returns a channel that gets a value after changes of members, several at once perhaps.
	Changed func(ctx context.Context) <-chan struct{}
	Peers   Peers
	From    func(ctx context.Context) (node.ID, bool) // who sends a request to the handler
	// Hold, when not nil, is closed when this node has caught up (Pull): before, the peers would send it what it fetches.
	Hold       <-chan struct{}
	Now        func() time.Time // nil: time.Now
	Timing     Timing           // zero fields: defaults
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Timing are the package's patience and pace.
type Timing struct {
	Debounce time.Duration // from a hint to a look; 10 ms
	Scan     time.Duration // between looks without a hint; 5 s
	// between looks at what the files of known tokens hold, where they are many; a minute, and after a start
	Check    time.Duration
	Gone     time.Duration // how long a file must be gone to be revoked: its directory may be about to go; 200 ms
	Digest   time.Duration // between digests; 5 min
	Save     time.Duration // between writes of the table; 1 s
	Retry    time.Duration // first pause after a failed push, doubled up to RetryMax; 250 ms
	RetryMax time.Duration // 2 s
	Push     time.Duration // patience with one push; 30 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.Debounce, 10*time.Millisecond)
	set(&t.Scan, 5*time.Second)
	set(&t.Check, time.Minute)
	set(&t.Gone, 200*time.Millisecond)
	set(&t.Digest, 5*time.Minute)
	set(&t.Save, time.Second)
	set(&t.Retry, 250*time.Millisecond)
	set(&t.RetryMax, 2*time.Second)
	set(&t.Push, 30*time.Second)
	return t
}

func (c Config) validate() error {
	switch {
	case c.Master.CacheDir == "" || c.StateDir == "":
		return errors.New("tokens: cachedir and state directory must be set")
	case c.Members == nil || c.Changed == nil || c.Peers == nil || c.From == nil:
		return errors.New("tokens: members and peers must be set")
	}
	return nil
}
