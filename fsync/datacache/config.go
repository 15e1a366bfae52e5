package datacache

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/replica"
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

// Clock is the cluster's hybrid clock: milliseconds since 1970 << 16 | counter.
type Clock struct {
	Now     func() uint64      // a stamp above every one returned or observed before
	Observe func(uint64) error // an error refuses a stamp that is too far ahead
}

// Config is what a Store needs. Changes of keys count as changes of members.
type Config struct {
	replica.Config
	Kind   Kind
	Master Master
	Keys   Keys
	Clock  Clock
	Scan   time.Duration // between scans; zero: a minute
	// PillarComes is called before a pillar of a minion that another master rendered takes the place of what a 3008
	// master may answer the minion from (pillar_cache: True). It must not block. It may be nil.
	PillarComes func(id string)
}

// pace is that of the package.
var pace = replica.Pace{Settle: 100 * time.Millisecond, Save: 2 * time.Second}

func (c *Config) fill() error {
	switch {
	case c.Master.CacheDir == "":
		return errors.New("datacache: cachedir must be set")
	case c.Keys == nil:
		return errors.New("datacache: keys must be set")
	case c.Clock.Now == nil || c.Clock.Observe == nil:
		return errors.New("datacache: no clock")
	}
	c.Scan = cmp.Or(c.Scan, time.Minute)
	if c.Logger != nil {
		c.Logger = c.Logger.With("kind", c.Kind)
	}
	return nil
}
