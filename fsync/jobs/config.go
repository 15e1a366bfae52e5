package jobs

import (
	"cmp"
	"context"
	"crypto"
	_ "crypto/md5" // hash_type
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Master is what the stock master's configuration says about its job cache.
type Master struct {
	CacheDir string // cachedir
	UID, GID int    // whose files they are; -1 leaves them as created
	// Umask is what this node's master takes off the modes of what it makes, wherever a job is from; nil: 022. Verified:
	// the first directory it makes when it starts (verify_env), whatever its umask.
	Umask    func() uint32
	Verified bool
	HashType string // hash_type
	JobCache string // master_job_cache
	External bool   // ext_job_cache is set
	Keep     time.Duration
	Booted   time.Time // when this machine started; zero: what the kernel says
}

const localCache = "local_cache"

var hashes = map[string]crypto.Hash{
	"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384,
	"sha512": crypto.SHA512,
}

// Off says why nothing is carried; empty when it is. With job_cache: False the master keeps no returns, but it keeps
// what it publishes.
func (m Master) Off() string {
	switch {
	case m.JobCache != localCache:
		return fmt.Sprintf("the master has master_job_cache: %s; only local_cache is replicated", m.JobCache)
	case m.External:
		return "the master has an ext_job_cache"
	case hashes[m.HashType] == 0:
		return fmt.Sprintf("the master has hash_type: %s", m.HashType)
	}
	return ""
}

// Keep is how long a master of that version keeps jobs (salt/utils/job.py:get_keep_jobs_seconds); zero: for ever.
func Keep(major int, keepJobsSeconds, keepJobs int64) time.Duration {
	const defaultSeconds, defaultHours, lastWithHours = 86400, 24, 3007
	if major <= lastWithHours && keepJobsSeconds == defaultSeconds && keepJobs != defaultHours {
		return time.Duration(keepJobs) * time.Hour
	}
	return time.Duration(keepJobsSeconds) * time.Second
}

// Peers sends a body to POST Path of another member and returns its answer, of at most limit bytes.
type Peers interface {
	Call(ctx context.Context, to node.ID, body []byte, limit int64) ([]byte, error)
}

// Config is what a Store needs. Registerer may be nil.
type Config struct {
	Self   node.ID
	Master Master
	// StateDir is for the table.
	StateDir string
	Off      string // why the cluster replicates no jobs; empty: it does
	// Members are the other members that have a master; Replicas those, this node among them, that shall have a job.
	Members  func() []node.ID
	Replicas func(jid string) []node.ID
	// Contested says whether an id is that of two different jobs, of two masters: what others have of it must not be mixed
	// with what is here. nil: none is.
	Contested func(jid string) bool
	// Received hears of a job that another node has sent something of, before anything of it is in the job cache. It may
	// be nil.
	Received func(jid string)
	// Changed returns a channel that gets a value after changes of members, several at once perhaps.
	Changed func(ctx context.Context) <-chan struct{}
	Peers   Peers
	From    func(ctx context.Context) (node.ID, bool) // who sends a request to the handler
	// Hold, when not nil, is closed when this node has caught up (Pull): before, the peers would send it what it fetches.
	Hold <-chan struct{}

	Now        func() time.Time // nil: time.Now
	Timing     Timing           // zero fields: defaults
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Timing are the package's patience and pace.
type Timing struct {
	Poll   time.Duration // between looks for new jobs; 1 s
	Linger time.Duration // how long a record may wait for others; 100 ms
	Quiet  time.Duration // without a return, before a job is compared; 2 s
	Scan   time.Duration // between scans of all jobs; 1 min
	Digest time.Duration // between comparisons of all jobs; 5 min
	Claim  time.Duration // how long what one peer is about to send is not wanted of another; 10 s
	Rest   time.Duration // without a change, before a job is compared by Ledger; 30 s
	Save   time.Duration // between writes of the table; 5 s
	Retry  time.Duration // first pause after a failure, doubled up to RetryMax; 250 ms
	// RetryMax is the longest pause; 15 s.
	RetryMax time.Duration
	Call     time.Duration // patience with one call; 60 s
}

func (t Timing) withDefaults() Timing {
	t.Poll = cmp.Or(t.Poll, time.Second)
	t.Linger = cmp.Or(t.Linger, 100*time.Millisecond)
	t.Quiet = cmp.Or(t.Quiet, 2*time.Second)
	t.Scan = cmp.Or(t.Scan, time.Minute)
	t.Digest = cmp.Or(t.Digest, 5*time.Minute)
	t.Claim = cmp.Or(t.Claim, 10*time.Second)
	t.Rest = cmp.Or(t.Rest, 30*time.Second)
	t.Save = cmp.Or(t.Save, 5*time.Second)
	t.Retry = cmp.Or(t.Retry, 250*time.Millisecond)
	t.RetryMax = cmp.Or(t.RetryMax, 15*time.Second)
	t.Call = cmp.Or(t.Call, time.Minute)
	return t
}

func (c *Config) fill() error {
	switch {
	case c.Master.CacheDir == "" || c.StateDir == "":
		return errors.New("jobs: cachedir and state directory must be set")
	case c.Members == nil || c.Replicas == nil || c.Changed == nil || c.Peers == nil || c.From == nil:
		return errors.New("jobs: members and peers must be set")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Off = cmp.Or(c.Off, c.Master.Off())
	c.Timing = c.Timing.withDefaults()
	return nil
}
