package publishing

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/consensus/state"
	"saltclusterd/durable"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/missedjobs"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// Config is what Publications need.
type Config struct {
	Self          node.ID
	Master        *localmaster.Config        // as saltclusterd started with it
	Latest        func() *localmaster.Config // that the master has started with
	View          func() state.View
	RunDir        string           // what was seen of jobs is kept there until the host restarts
	Shared        bool             // the masters share a file system
	LateJobs      bool             // the option late_jobs
	SyndicReturns func() wall.Mode // of the rule for returns of syndics
	Released      func() bool      // another process serves in the place of this one

	Notify []func(saltwire.PubPeek, []byte) // called with each job of the local master, before it leaves
	Hub    func() Sender                    // is made after the Publications
	Cached func(jid string) (string, bool)  // the job, published before this process, whose id a minion has cut so

	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Publications are the jobs of the local master on their way out, and what is known of those of all masters.
type Publications struct {
	Table     *router.Jobs
	Known     *KnownJobs
	Publisher *Publisher
	Missed    *missedjobs.Republisher
}

// New returns Publications. Missed has to be opened.
func New(c Config) *Publications {
	p := &Publications{Table: router.NewJobs(0)}
	p.Missed = missedjobs.New(missedjobs.Config{
		Ledger:   missedjobs.NewLedger(filepath.Join(c.RunDir, "seen-jobs"), durable.BootID(), time.Now),
		CacheDir: c.Master.CacheDir, Major: c.Master.Version.Major, MasterID: c.Master.Text("master_id"),
		Content: HashContent, Released: c.Released,
		Off:        func() string { return MissedOff(c.Latest(), c.Shared, c.LateJobs, c.SyndicReturns()) },
		JobTimeout: func() time.Duration { return min(Timeout(c.Master), fanout.MaxAge) },
		Publish:    func(plain []byte) error { return p.Publisher.PublishMissed(plain) },
		Now:        time.Now, Logger: c.Logger, Registerer: c.Registerer,
	})
	p.Publisher = NewPublisher(PublisherConfig{
		Republished: p.Missed.Republished, Overdue: p.Missed.Overdue, Notify: c.Notify, Hub: c.Hub, Logger: c.Logger,
	})
	p.Known = NewKnownJobs(KnownConfig{
		Self: c.Self, Master: c.Master, View: c.View, Table: p.Table, Since: time.Now(), Seen: p.Missed.Seen,
		Cached: c.Cached, Logger: c.Logger,
	})
	return p
}
