package jobs

import (
	"cmp"
	"crypto"
	_ "crypto/md5" // hash_type
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"errors"
	"fmt"
	"time"

	"saltclusterd/fsync/replica"
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

// Config is what a Store needs.
type Config struct {
	replica.Config
	Self   node.ID
	Master Master
	Off    string // why the cluster replicates no jobs; empty: it does
	// Replicas are the members, this node among them, that shall have a job.
	Replicas func(jid string) []node.ID
	// Contested says whether an id is that of two different jobs, of two masters: what others have of it must not be mixed
	// with what is here. nil: none is.
	Contested func(jid string) bool
	// Received is called for a job that another node has sent something of, before anything of it is in the job cache. It
	// may be nil.
	Received func(jid string)
	Timing   Timing // zero fields: defaults
}

// Timing is how often jobs are read.
type Timing struct {
	Poll  time.Duration // between searches for new jobs; 1 s
	Quiet time.Duration // without a return, before a job is compared; 2 s
	Scan  time.Duration // between scans of all jobs; 1 min
	Claim time.Duration // how long what one peer is about to send is not wanted of another; 10 s
	Rest  time.Duration // without a change, before a job is compared by Ledger; 30 s
}

// pace is that of the package.
var pace = replica.Pace{Linger: 100 * time.Millisecond, Save: 5 * time.Second, RetryMax: 15 * time.Second,
	Call: time.Minute}

func (c *Config) fill() error {
	switch {
	case c.Master.CacheDir == "":
		return errors.New("jobs: cachedir must be set")
	case c.Replicas == nil:
		return errors.New("jobs: replicas must be set")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Off = cmp.Or(c.Off, c.Master.Off())
	c.Timing.Poll = cmp.Or(c.Timing.Poll, time.Second)
	c.Timing.Quiet = cmp.Or(c.Timing.Quiet, 2*time.Second)
	c.Timing.Scan = cmp.Or(c.Timing.Scan, time.Minute)
	c.Timing.Claim = cmp.Or(c.Timing.Claim, 10*time.Second)
	c.Timing.Rest = cmp.Or(c.Timing.Rest, 30*time.Second)
	return nil
}
