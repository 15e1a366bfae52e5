package masterlink

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// ownEvery is how often the files are read that the local master has for itself.
const ownEvery = 30 * time.Second

// maxOwn and maxOwnSize bound what a node reports of these files to others. maxOwnSize is half of what older members
// read of the answer.
const (
	maxOwn     = 64
	maxOwnSize = 8 << 10 // bytes
)

var fine = health.Result{Level: health.OK}

// InspectorConfig is what an Inspector needs.
type InspectorConfig struct {
	Master       func() *localmaster.Config // as saltclusterd started with it; nil before it was read, and on a witness
	Shared       bool                       // the masters of the cluster share a file system
	EveryMaster  func(tag string) bool      // events of minions with that tag fire on every master
	CompareRoots bool                       // what is in the roots is compared between masters
	Logger       *slog.Logger
}

// Inspector reports what is wrong with the local master's configuration, and what the master has for itself.
type Inspector struct {
	c      InspectorConfig
	latest atomic.Pointer[localmaster.Config] // that the master has started with since; nil: the first one
	own    atomic.Pointer[localmaster.Own]    // nil: not read yet
	ownAt  atomic.Int64                       // when own was read, in Unix nanoseconds
}

// NewInspector returns an Inspector, which reads nothing before it is asked.
func NewInspector(c InspectorConfig) *Inspector { return &Inspector{c: c} }

// Latest returns the configuration that the master has started with; nil when none was read.
func (i *Inspector) Latest() *localmaster.Config { return cmp.Or(i.latest.Load(), i.c.Master()) }

// Findings lists faults in the configuration that the master has started with.
func (i *Inspector) Findings() []localmaster.Finding {
	master := i.Latest()
	out := append(localmaster.CheckDropIn(master), localmaster.CheckActors(master, i.c.EveryMaster)...)
	if i.c.Shared && configuredStore(master) != nil {
		out = append(out, localmaster.Finding{
			Option: "keys.cache_driver", Fatal: true,
			Message: "The salt-master keeps minion keys in its mmap_key store on a shared file system, " +
				"where masters do not see each other's changes.",
			Fix: "Remove 'keys.cache_driver: mmap_key' from the master's configuration, " +
				"or give each master a disk of its own (cluster_isolated_filesystem).",
		})
	}
	return out
}

// TakesKeys reports whether the master takes keys away from minions whose events fire on another master.
func (i *Inspector) TakesKeys() bool {
	found := localmaster.CheckActors(i.Latest(), i.c.EveryMaster)
	return slices.ContainsFunc(found, func(f localmaster.Finding) bool { return f.Fatal })
}

// LogFindings logs all findings.
func (i *Inspector) LogFindings() { i.log(i.Findings()) }

// UseLatest takes over the configuration that the master has started with, and logs the findings that the one before
// had not.
func (i *Inspector) UseLatest(now *localmaster.Config) {
	before := i.Findings()
	i.latest.Store(now)
	i.log(slices.DeleteFunc(i.Findings(), func(f localmaster.Finding) bool { return slices.Contains(before, f) }))
}

func (i *Inspector) log(found []localmaster.Finding) {
	for _, f := range found {
		level := slog.LevelWarn
		if f.Fatal {
			level = slog.LevelError
		}
		i.c.Logger.Log(context.Background(), level, "salt-master configuration",
			"option", f.Option, "reason", f.Message, "hint", f.Fix)
	}
}

// Own returns what the master has for itself, as it was read last; nil before that.
func (i *Inspector) Own() localmaster.Own {
	if own := i.own.Load(); own != nil {
		return *own
	}
	return nil
}

// CheckOwn reads what the master has for itself when that is due. It is a health check so that a disk that hangs
// holds up nothing else, and finds no fault: differences between masters are problems of the cluster, see OwnProblems.
func (i *Inspector) CheckOwn(context.Context) health.Result {
	master := i.Latest()
	if now := time.Now().UnixNano(); master != nil && now-i.ownAt.Load() >= int64(ownEvery) {
		own := localmaster.OwnOf(master, i.c.CompareRoots).Bounded(maxOwn, maxOwnSize)
		i.own.Store(&own)
		i.ownAt.Store(now)
	}
	return fine
}

// OwnProblems compares what masters have for themselves. It ignores members that do not report it, which have nil.
func OwnProblems(masters map[string]localmaster.Own) (out []adminapi.Problem) {
	maps.DeleteFunc(masters, func(_ string, own localmaster.Own) bool { return own == nil })
	for _, f := range localmaster.CompareOwn(masters) {
		out = append(out, adminapi.Problem{Level: adminapi.LevelWarn, Message: f.Message, Hint: f.Fix})
	}
	return out
}
