package datacache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Master is what the stock master's configuration says about its cache.
type Master struct {
	Major    int    // 3006, 3007, 3008
	CacheDir string // cachedir
	// UID and GID are whose files they are; -1 leaves them as created.
	UID, GID int

	DataCache    bool   // minion_data_cache
	EnforceMine  bool   // enforce_mine_cache: mines are kept without minion_data_cache, too
	Driver       string // cache
	PillarDriver string // pillar.cache_driver (3008); empty: as Driver
	PillarCache  bool   // pillar_cache
	Preserve     bool   // preserve_minion_cache: a deleted key leaves the data
	Shared       bool   // the masters have this cache in common
}

// localfs is the one cache driver (salt/cache/localfs.py) whose data this package can carry: others share them by
// themselves.
const localfs = "localfs"

// splitSince is the first version with a bank for grains and one for pillars.
const splitSince = 3008

// off says why nothing is carried; empty when it is.
func (m Master) off(k Kind) string {
	switch {
	case m.Shared:
		return "the masters share a file system"
	case !m.DataCache && (k != Mine || !m.EnforceMine):
		return "the master has minion_data_cache: False"
	case m.Driver != localfs:
		return fmt.Sprintf("the master has cache: %s; only localfs is replicated", m.Driver)
	}
	return ""
}

// pillarsOff says why pillars of others are not written; empty when they are.
func (m Master) pillarsOff() string {
	switch {
	case m.Major < splitSince:
		return ""
	case m.PillarDriver != "" && m.PillarDriver != localfs:
		return fmt.Sprintf("the master has pillar.cache_driver: %s", m.PillarDriver)
	case m.PillarCache:
		return "the master answers minions from its pillar cache (pillar_cache: True)"
	}
	return ""
}

// Keys is the cluster's view of minion keys.
type Keys interface {
	// Accepted returns the accepted public key of a minion.
	Accepted(id string) (pub string, ok bool)
	// Known says whether a minion has a key in any state, a denied one included: as long as it has, salt-key keeps its
	// data.
	Known(id string) bool
	// Life tells the present key of a minion from one that was deleted before, though it may be the same: it grows. Zero:
	// there was none.
	Life(id string) uint64
}

// Peers sends a body to the path of the Store's kind at another member.
type Peers interface {
	Push(ctx context.Context, to node.ID, body []byte) error
}

// Clock is the cluster's hybrid clock: milliseconds since 1970 << 16 | counter.
type Clock struct {
	Now     func() uint64      // a stamp above every one returned or observed before
	Observe func(uint64) error // an error refuses a stamp that is too far ahead
}

// Config is what a Store needs. Registerer may be nil.
type Config struct {
	Kind     Kind
	Master   Master
	StateDir string // for the table
	Keys     Keys
	Members  func() []node.ID // the other members that have a master
	// Changed returns a channel that gets a value after changes of keys or members, several at once perhaps.
	Changed func(ctx context.Context) <-chan struct{}
	Peers   Peers
	From    func(ctx context.Context) (node.ID, bool) // who sends a request to the handler
	Clock   Clock
	// Hold, when not nil, is closed when this node has caught up (Pull): before, the peers would send it what it fetches.
	Hold       <-chan struct{}
	Timing     Timing // zero fields: defaults
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Timing are the package's patience and pace.
type Timing struct {
	Scan   time.Duration // between scans; 1 min
	Digest time.Duration // between digests; 5 min
	Settle time.Duration // between looks at changes of keys and members; 100 ms
	Save   time.Duration // between writes of the table; 2 s
	Retry  time.Duration // first pause after a failed push, doubled up to RetryMax; 250 ms
	// RetryMax is the longest pause; 2 s, because a peer that is back lacks news until it is over.
	RetryMax time.Duration
	Push     time.Duration // patience with one push; 30 s
}

func (t Timing) withDefaults() Timing {
	set := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	set(&t.Scan, time.Minute)
	set(&t.Digest, 5*time.Minute)
	set(&t.Settle, 100*time.Millisecond)
	set(&t.Save, 2*time.Second)
	set(&t.Retry, 250*time.Millisecond)
	set(&t.RetryMax, 2*time.Second)
	set(&t.Push, 30*time.Second)
	return t
}

func (c Config) validate() error {
	switch {
	case c.Master.CacheDir == "" || c.StateDir == "":
		return errors.New("datacache: cachedir and state directory must be set")
	case c.Keys == nil || c.Members == nil || c.Changed == nil || c.Peers == nil || c.From == nil:
		return errors.New("datacache: keys, members and peers must be set")
	case c.Clock.Now == nil || c.Clock.Observe == nil:
		return errors.New("datacache: no clock")
	}
	return nil
}
