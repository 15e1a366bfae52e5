package rootsadmin

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/fsync/roots"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// lateAfter is how long a node may need for a revision before its health check warns.
const lateAfter = time.Minute

// Check warns when this node's roots differ from the cluster's, or wait for an operator. It fails as long as minions
// must not be served.
func (r *Roots) Check(context.Context) health.Result {
	if r.engine == nil || !r.opened.Load() {
		return health.Result{Level: health.OK}
	}
	st := r.engine.Status()
	switch {
	case !r.cfg.Serving() && !st.CaughtUp:
		return health.Result{
			Level: health.Fail, Reason: "file and pillar roots are not up to date yet: " + progressText(st),
			Hint: "saltclusterctl roots status shows the progress",
		}
	case r.isLate(st):
		return health.Result{
			Level: health.Warn, Reason: "file and pillar roots are behind the cluster: " + problemText(st),
			Hint: "saltclusterctl roots status",
		}
	case len(st.Held) > 0:
		return health.Result{
			Level:  health.Warn,
			Reason: fmt.Sprintf("revision %d of the roots deletes many files and waits for a decision", st.Held[0]),
			Hint:   fmt.Sprintf("saltclusterctl roots history, then roots confirm %d or roots drop %d", st.Held[0], st.Held[0]),
		}
	case len(st.Problems) > 0:
		return health.Result{
			Level: health.Warn, Reason: "file and pillar roots: " + problemText(st), Hint: "saltclusterctl roots status",
		}
	}
	return health.Result{Level: health.OK}
}

// isLate says whether this node has been behind for longer than lateAfter.
func (r *Roots) isLate(st roots.Status) bool {
	if st.CaughtUp {
		r.behind.Store(0)
		return false
	}
	now := time.Now().UnixNano()
	r.behind.CompareAndSwap(0, now)
	return time.Duration(now-r.behind.Load()) > lateAfter
}

// Line returns the line about roots in the status.
func (r *Roots) Line() *adminapi.RootsLine {
	rep := r.ownReport()
	st := rep.Status
	line := &adminapi.RootsLine{
		Off: rep.Off, Mode: string(st.Mode), Base: st.Base, Head: st.Head, Phase: string(st.Progress.Phase),
		Conflicts: st.Conflicts,
	}
	for _, slot := range st.Slots {
		line.Files += slot.Files
	}
	return line
}
