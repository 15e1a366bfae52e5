package jobcache

import (
	"crypto"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltlog"
)

// Keys is what the cluster knows of minion keys.
type Keys interface {
	// Accepted returns the accepted key of a minion.
	Accepted(id string) (pub string, ok bool)
	// IDs lists the minions with an accepted key; asked only for jobs with wildcards that a syndic brings.
	IDs() []string
}

// Config configures a Cache.
type Config struct {
	Options  Options
	Version  localmaster.Version // of the master
	CacheDir string              // its cachedir
	UID, GID int                 // who its files belong to; -1: whoever creates them
	// Umask is what the master takes off the modes of what it makes; nil: 022. It is asked for each file, so that a master
	// which was started with another one is followed.
	Umask func() uint32
	Keys  Keys
	// IDSuffix, "_" and some digits, ends the ids of jobs that minions have run unasked, so that none is that of a job
	// which a master publishes in the same microsecond, or of another node. Empty: they are as the master would make them.
	IDSuffix string
	// Stored, if set, hears of every return that was written, and again when one is taken that was there ahead; it must
	// not block nor change the job.
	Stored   func(*Job)
	Log      *saltlog.Log // says what a stock master says of returns; nil: nothing
	Logger   *slog.Logger
	Register prometheus.Registerer
}

// Cache plans and writes for one master. Plan may be called concurrently, Apply too (it takes turns).
type Cache struct {
	cfg     Config
	metrics *metrics
	jids    jidSource

	major        int
	hash         crypto.Hash
	maxEvent     int64
	endTimes     bool
	requireSig   bool
	dropUnsigned bool
	sigAlgo      string
	own          uint32 // the umask of this process, which the kernel takes off modes that are not set explicitly
	verified     bool   // the master makes the first directories itself, when it starts

	publishing chan struct{} // a place for each answer that Published is making

	syncing sync.Mutex // guards disks
	disks   disks

	mu   sync.Mutex // guards what follows, and the order of writing
	dirs jobDirs
}

// New returns a cache, or an error with the reason when the master needs Python for its returns (Native).
func New(c Config) (*Cache, error) {
	if ok, reason := Native(c.Options, c.Version.Major, "_return"); !ok {
		return nil, needs("%s", reason)
	}
	if c.CacheDir == "" || c.Keys == nil {
		return nil, fmt.Errorf("jobcache: no cachedir or keys configured")
	}
	if c.UID == os.Geteuid() && c.GID == os.Getegid() {
		c.UID, c.GID = -1, -1 // files are created so anyway
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Umask == nil {
		c.Umask = func() uint32 { return usualUmask }
	}
	o := c.Options
	k := &Cache{
		cfg: c, metrics: newMetrics(c.Register), major: c.Version.Major, hash: hashes[o.Text("hash_type")],
		maxEvent: o.Int("max_event_size"), endTimes: o.Bool("job_cache_store_endtime"),
		requireSig: o.Bool("require_minion_sign_messages"), dropUnsigned: o.Bool("drop_messages_signature_fail"),
		sigAlgo: signedBy(c.Version, o), own: ownUmask(), verified: o.Bool("verify_env"), disks: newDisks(),
		publishing: make(chan struct{}, maxPublishing),
	}
	k.jids.suffix = c.IDSuffix
	if c.IDSuffix == "" && o.Bool("unique_jid") {
		k.jids.suffix = "_" + strconv.Itoa(os.Getpid())
	}
	return k, nil
}

// Assign returns a new job id when a load's is "req" (a scheduled job's), "" otherwise. It goes into the journal with
// the load, so that it stays the same.
func (c *Cache) Assign(jid string, now time.Time) string {
	if jid != "req" {
		return ""
	}
	return c.jids.nextJID(now)
}

// Has says whether a minion's return for a job was taken: it is in the job cache, whole, and not only ahead.
func (c *Cache) Has(jid, minion string) bool {
	return jid != "" && validID(minion) && isTaken(filepath.Join(c.cfg.CacheDir, c.jobPath(jid), minion))
}

// Writable tries whether the job cache as a whole can be written.
func (c *Cache) Writable() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.makeDirs("jobs"); err != nil {
		return err
	}
	dir, err := openDir(filepath.Join(c.cfg.CacheDir, "jobs"))
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	const probe = tempPrefix + "probe"
	if err := c.putFile(dir, probe, make([]byte, 4096)); err != nil {
		return err
	}
	return unix.Unlinkat(dir, probe, 0)
}

// Close releases the directories held open.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dirs.closeAll()
	if c.syncing.TryLock() { // else a disk that takes long to sync has it, and the process ends
		c.disks.closeFiles()
		c.syncing.Unlock()
	}
	return nil
}
