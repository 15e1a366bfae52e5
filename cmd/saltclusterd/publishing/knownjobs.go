package publishing

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

const (
	// jidTime is the layout of the time that a job id begins with, UTC.
	jidTime = "20060102150405"
	// jidClock is by how much a job id may be older than the job after a clock was set.
	jidClock = time.Minute
)

// KnownConfig is what KnownJobs need.
type KnownConfig struct {
	Self   node.ID
	Master *localmaster.Config
	View   func() state.View
	Table  *router.Jobs
	Since  time.Time // from when on the table has all publications

	Seen   func(jid string)                // called before a publication leaves
	Cached func(jid string) (string, bool) // the job, published before this process, whose id a minion has cut so
	Logger *slog.Logger
}

// KnownJobs is what this node knows of jobs that masters of the cluster have published.
type KnownJobs struct {
	c KnownConfig

	mu      sync.Mutex
	clashes int
	last    clash
}

// clash is a case in which two masters gave one id to different jobs.
type clash struct {
	jid           string
	first, second node.ID
}

// NewKnownJobs returns KnownJobs over a table that others fill too.
func NewKnownJobs(c KnownConfig) *KnownJobs { return &KnownJobs{c: c} }

// Record records a publication before it leaves. Without unique_jid two masters that publish in the same microsecond
// make the same id: minions that both jobs are for run only the one they receive first.
func (k *KnownJobs) Record(jid string, publisher node.ID, plain []byte) {
	k.c.Seen(jid)
	first, clashes := k.c.Table.Record(jid, publisher, hashJob(plain, false))
	if !clashes {
		return
	}
	k.c.Logger.Error("two masters gave one id to different jobs: minions of both ran only one of them; "+
		"rerun the missing one", "jid", jid, "node", first, "other", publisher)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clashes++
	k.last = clash{jid, first, publisher}
}

// HashContent returns a hash of what a job does and for whom: several masters publish one job under one id where
// syndics pass it on. It is 0 for a publication that cannot be read.
func HashContent(plain []byte) uint64 { return hashJob(plain, true) }

// hashJob is HashContent. withLists: lists of minions make a difference. The parts of a batch of 3008 have one id, each
// with a list of its own, and syndics need not pass them on in step.
func hashJob(plain []byte, withLists bool) uint64 {
	h := xxhash.New()
	var target []byte
	list := false
	err := saltwire.WalkMap(plain, func(key, value []byte) error {
		switch string(key) {
		case "tgt":
			target = value
			return nil
		case "tgt_type":
			kind, ok := saltvalue.Text(value)
			list = ok && kind == "list"
		case "fun", "arg":
		default:
			return nil
		}
		_, _ = h.Write(key)
		_, _ = h.Write(value)
		return nil
	})
	if err != nil {
		return 0
	}
	if withLists || !list {
		_, _ = h.Write(target)
	}
	return max(h.Sum64(), 1)
}

// FindWhole returns the published job whose id a minion has cut in the return of a queued job. It is empty when the id
// has to stay as it is.
func (k *KnownJobs) FindWhole(jid, masterID string) string {
	if !saltwire.IsCutJID(jid) {
		return ""
	}
	publisher := node.ID(masterID)
	if masterID != "" && k.IsOwn(masterID) {
		publisher = k.c.Self
	}
	if full, ok := k.c.Table.Whole(jid, publisher); ok {
		return full
	}
	if _, published := k.c.Table.Lookup(jid); published {
		return ""
	}
	full, _ := k.c.Cached(jid)
	return full
}

// IsOwn says whether a job with a master_id, which publications have and returns bring back, is judged here. The id is
// that of the local master, or of no master: a minion may send any, and one of no other master is judged here.
func (k *KnownJobs) IsOwn(id string) bool {
	return id == k.c.Master.MasterID || id == string(k.c.Self) || !publishes(k.c.View(), node.ID(id))
}

// publishes says whether a node can have published jobs.
func publishes(members state.View, id node.ID) bool {
	m, ok := members.Member(id)
	return ok && !m.Witness
}

// IsMaster says whether an id is one under which a master of the cluster keeps what its runners return, or a node's.
func (k *KnownJobs) IsMaster(id string) bool {
	if id != "" && id == k.c.Master.Text("id") {
		return true
	}
	_, ok := k.c.View().Member(node.ID(strings.TrimSuffix(id, "_master")))
	return ok
}

// Know says whether a job whose return has arrived was published from here. The table has every job that was published
// since the start, until it is full, before a minion receives it. A job in the job cache was published, whatever the
// clock has been since.
func (k *KnownJobs) Know(jid, masterID string) wall.Knowledge {
	if _, ok := k.c.Table.Lookup(jid); ok {
		return wall.Published
	}
	if masterID != "" && !k.IsOwn(masterID) {
		return wall.Uncertain // the other node knows
	}
	if len(jid) < 20 || k.c.Table.Len() >= router.DefaultJobs {
		return wall.Uncertain
	}
	at, err := time.Parse(jidTime, jid[:len(jidTime)])
	if err != nil || at.Before(k.c.Since.Add(jidClock)) ||
		jobcache.Kept(k.c.Master.CacheDir, k.c.Master.Text("hash_type"), jid) {
		return wall.Uncertain
	}
	return wall.NotPublished
}

// Check warns of ids that two masters have given to different jobs since this process was started.
func (k *KnownJobs) Check() health.Result {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.clashes == 0 {
		return health.Result{Level: health.OK}
	}
	return health.Result{
		Level: health.Warn,
		Reason: fmt.Sprintf("%s and %s gave the id %s to two different jobs (%s since the start): "+
			"minions of both ran only one of them",
			k.last.first, k.last.second, k.last.jid, wording.Plural(k.clashes, "such id")),
		Hint: "look both up with salt-run jobs.lookup_jid on their masters and rerun the missing one; " +
			"'unique_jid: True' in a file of your own in master.d makes this very unlikely, but ids longer",
	}
}
