package replication

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/datacache"
	"saltclusterd/fsync/jobs"
	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/tokens"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/localmaster"
)

// MineSettle is how long the answer to a minion waits for the other nodes to have its mine: a minion that got it may
// ask any master.
const MineSettle = 500 * time.Millisecond

// Member is the running membership (*membership.Member).
type Member interface {
	OtherMasters() []node.ID
	Sources() (there, absent []node.ID)
	JobReplicas(jid string) []node.ID
	Call(ctx context.Context, method string, to node.ID, path string, body []byte, limit int64) ([]byte, error)
}

// Log is the consensus log (*consensus.Node).
type Log interface {
	Status() consensus.Status
	Watch(context.Context) <-chan struct{}
}

// Config configures Stores.
type Config struct {
	Self    node.ID
	Options *config.Config
	Master  *localmaster.Config
	Member  Member
	Log     Log
	Since   time.Time // when this membership was opened
	Keys    datacache.Keys
	Stamps  *hlc.Clock // of what the nodes know of minions
	Umask   func() uint32
	// LeftToShare says whether only the masters themselves write to a path, which is on the file system that they share.
	LeftToShare func(path string) bool
	JobsShared  bool // the masters share their job cache
	// JobReceived is called with each job that another member sends. JobContested says whether two masters gave an id to
	// different jobs.
	JobReceived  func(jid string)
	JobContested func(jid string) bool
	// PillarComes is called before a pillar of a minion takes the place of what the local master may answer from.
	PillarComes func(id string)
	// Waiting is called with what this node waits for while it catches up.
	Waiting    func(step string)
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Stores are the replicated stores of this node.
type Stores struct {
	Data   *datacache.Store
	Mines  *datacache.Store
	Tokens *tokens.Store
	Jobs   *jobs.Store // the master's job cache

	cfg       Config
	held      map[string]*gate               // by part: closed until it is up to date, or was given up
	runner    atomic.Pointer[catchup.Runner] // nil: the parts do not catch up yet, or never
	caught    atomic.Bool                    // they have
	answering atomic.Bool                    // the stores are open: others may be answered
	questions chan struct{}                  // bounds the questions of others
}

// New returns the stores; nothing runs before they are opened.
func New(cfg Config) (*Stores, error) {
	owner, err := cfg.Master.Owner()
	if err != nil {
		return nil, err
	}
	s := &Stores{cfg: cfg, held: map[string]*gate{}, questions: make(chan struct{}, maxQuestions)}
	for _, name := range []string{PartGrains, PartMines, PartTokens, PartJobs} {
		s.held[name] = newGate()
	}
	if s.Data, err = s.newMinionData(datacache.Data, owner); err != nil {
		return nil, err
	}
	if s.Mines, err = s.newMinionData(datacache.Mine, owner); err != nil {
		return nil, err
	}
	if s.Tokens, err = s.newTokens(owner); err != nil {
		return nil, err
	}
	s.Jobs, err = jobs.New(jobs.Config{
		Config: s.replicated("jobs"), Self: cfg.Self, Master: jobsMaster(cfg.Master, owner, cfg.Umask), Off: s.jobsOff(),
		Replicas: cfg.Member.JobReplicas, Contested: cfg.JobContested, Received: cfg.JobReceived,
	})
	return s, err
}

func (s *Stores) stateDir(name string) string {
	return filepath.Join(s.cfg.Options.Paths.StateDir, name)
}

// newMinionData makes what gives every master the data of one kind that one has cached.
func (s *Stores) newMinionData(k datacache.Kind, owner localmaster.Owner) (*datacache.Store, error) {
	m := s.cfg.Master
	return datacache.New(datacache.Config{
		Config: s.replicated("datacache"), Kind: k,
		Master: datacache.Master{
			Major: m.Version.Major, CacheDir: m.CacheDir, UID: owner.UID, GID: owner.GID,
			DataCache: m.Bool("minion_data_cache"), EnforceMine: m.Bool("enforce_mine_cache"),
			Driver:       m.Text("cache"),
			PillarDriver: m.Text("pillar.cache_driver"),
			Preserve:     m.Bool("preserve_minion_cache"), Shared: s.cfg.LeftToShare(dataDir(m, k)),
		},
		Keys: s.cfg.Keys, PillarComes: s.cfg.PillarComes,
		Clock: datacache.Clock{
			Now:     func() uint64 { return uint64(s.cfg.Stamps.Now()) },
			Observe: func(stamp uint64) error { return s.cfg.Stamps.Observe(hlc.Timestamp(stamp)) },
		},
	})
}

// dataDir is where a master keeps what is known of minions.
func dataDir(m *localmaster.Config, k datacache.Kind) string {
	bank := "minions"
	switch {
	case m.Version.Major < 3008:
	case k == datacache.Mine:
		bank = "mine"
	default:
		bank = "grains"
	}
	return filepath.Join(m.CacheDir, bank)
}

// newTokens makes what lets every master take the eauth tokens that one has issued.
func (s *Stores) newTokens(owner localmaster.Owner) (*tokens.Store, error) {
	m := s.cfg.Master
	return tokens.New(tokens.Config{
		Master: tokens.Master{
			Major: m.Version.Major, CacheDir: m.CacheDir, UID: owner.UID, GID: owner.GID,
			Store:  m.Text("eauth_tokens"),
			Driver: cmp.Or(m.Text("eauth_tokens.cache_driver"), m.Text("cache")),
			Shared: s.cfg.LeftToShare(filepath.Join(m.CacheDir, "tokens")),
		},
		Config: s.replicated("tokens"),
	})
}

// replicated is what stores are given that all masters have in common; dir is that of a table.
func (s *Stores) replicated(dir string) replica.Config {
	return replica.Config{
		StateDir: s.stateDir(dir), Members: s.cfg.Member.OtherMasters, Changed: s.cfg.Log.Watch, Peers: peers{s.cfg.Member},
		From: peer.FromContext, Logger: s.cfg.Logger, Registerer: s.cfg.Registerer,
	}
}

// peers implements replica.Peers.
type peers struct{ member Member }

// Call implements replica.Peers.
func (p peers) Call(ctx context.Context, to node.ID, path string, body []byte, limit int64) ([]byte, error) {
	return p.member.Call(ctx, http.MethodPost, to, path, body, limit)
}

// jobsOff says why the cluster replicates no jobs; empty when it does.
func (s *Stores) jobsOff() string {
	switch {
	case s.cfg.JobsShared:
		return "cluster_isolated_filesystem is False: the masters share their job cache"
	case s.cfg.Options.Cluster.JobReplicas <= 1:
		return "cluster_job_replicas is 1"
	}
	return ""
}

// ReplicatesJobs says whether other members keep jobs of this node.
func (s *Stores) ReplicatesJobs() bool { return s.jobsOff() == "" }

// TakesMines says whether this node writes mines that other masters have written.
func (s *Stores) TakesMines() bool { return s.Mines.Off() == "" }

// FollowOptions uses another configuration of the master.
func (s *Stores) FollowOptions(master *localmaster.Config) { s.Jobs.SetKeep(keepJobs(master)) }

// NotifyReturnStored notes each return that was written to the local job cache without the master.
func (s *Stores) NotifyReturnStored(job *jobcache.Job) {
	ret := jobs.Return{Data: job.Return, Out: job.Out}
	if job.Unasked() {
		s.Jobs.Unasked(job.JID, job.Minion, ret)
		return
	}
	s.Jobs.Stored(job.JID, job.Minion, ret, job.Ahead)
}

// NotifyAnswered notes each call that the local master has answered (sidecar.Config.Done).
func (s *Stores) NotifyAnswered(id, cmd string) (settle func(context.Context)) {
	switch cmd {
	case "_pillar":
		s.Data.Touched(id)
	case "_mine", "_mine_delete", "_mine_flush":
		return func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, MineSettle)
			defer cancel()
			s.Mines.Spread(ctx, id)
		}
	}
	return nil
}

// MakeCacheDir makes the master's cachedir on a node whose master has never run: what the others have needs a place.
func (s *Stores) MakeCacheDir() {
	dir := s.cfg.Master.CacheDir
	if _, err := os.Lstat(dir); err == nil {
		return
	}
	owner, err := s.cfg.Master.Owner()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, owner.UID, owner.GID)
	}
	if err != nil {
		s.cfg.Logger.Warn("the master's cachedir is not made", "path", dir, "err", err)
	}
}
