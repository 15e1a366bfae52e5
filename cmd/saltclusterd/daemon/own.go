package daemon

import (
	"context"
	"sync/atomic"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
)

// ownEvery is how often the files are read that the local master has for itself.
const ownEvery = 30 * time.Second

// maxOwn and maxOwnSize bound what a node names of this to others: half of what members of before read of the answer that it is in (maxStats).
const (
	maxOwn     = 64
	maxOwnSize = 8 << 10
)

// ownFiles is what the local master has for itself (localmaster.Own), as it was read last.
type ownFiles struct {
	read atomic.Pointer[localmaster.Own]
	at   atomic.Int64 // when, in Unix nanoseconds
}

// get returns what was read last; nil: nothing was yet.
func (o *ownFiles) get() localmaster.Own {
	if own := o.read.Load(); own != nil {
		return *own
	}
	return nil
}

// checkOwn reads these files now and then. It is a check so that a disk that hangs holds up nothing else; what differs between masters
// is a problem of the cluster, see ownProblems.
func (d *Daemon) checkOwn(context.Context) health.Result {
	master := d.latest.Load()
	if master == nil {
		master = d.master
	}
	if now := time.Now().UnixNano(); master != nil && now-d.own.at.Load() >= int64(ownEvery) {
		own := localmaster.OwnOf(master, d.cfg.Roots.Sync != config.RootsOff && !d.shares()).Bounded(maxOwn, maxOwnSize)
		d.own.read.Store(&own)
		d.own.at.Store(now)
	}
	return fine
}

// ownProblems says what masters have for themselves that they must have alike, or that one of them at most must have.
func ownProblems(stats map[node.ID]nodeStats) (out []adminapi.Problem) {
	masters := map[string]localmaster.Own{}
	for id, s := range stats {
		if s.Own != nil {
			masters[string(id)] = s.Own
		}
	}
	for _, f := range localmaster.CompareOwn(masters) {
		out = append(out, adminapi.Problem{Level: adminapi.LevelWarn, Message: f.Message, Hint: f.Fix})
	}
	return out
}
