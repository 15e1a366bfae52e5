package rootsadmin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/roots"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

const (
	poll = 20 * time.Millisecond
	// lateAfter is how long a node may need for a revision before health says so.
	lateAfter = time.Minute
)

// Await waits until what the cluster had in force when this node started is on its disk.
func (r *Roots) Await(ctx context.Context, tell func(catchup.Report)) error {
	head, _ := headOf(r.cfg.Log.View())
	for {
		st := r.engine.Status()
		if st.Base >= head.Number || r.engine.CaughtUp() {
			return nil
		}
		tell(catchup.Report{
			Done: st.Progress.BytesDone, Total: st.Progress.Bytes, Unit: catchup.Bytes, Note: progressText(st),
			Starved: len(st.Problems) > 0,
		})
		if !backoff.Sleep(ctx, poll) {
			return ctx.Err()
		}
	}
}

// Pending says how far this node is with what the cluster has in force; empty if it has that, or if its roots are not replicated.
func (r *Roots) Pending() string {
	if r.engine == nil || r.engine.CaughtUp() {
		return ""
	}
	return progressText(r.engine.Status())
}

// progressText says how far a node is with a revision.
func progressText(st roots.Status) string {
	p := st.Progress
	text := fmt.Sprintf("revision %d after %d", st.Head, st.Base)
	switch {
	case st.Head == st.Base:
		text = fmt.Sprintf("revision %d, comparing it with the disk", st.Head)
	case p.Phase == roots.PhaseFetch && p.Bytes > 0:
		text += fmt.Sprintf(", %d of %d MiB fetched, %d of %d files", p.BytesDone>>20, p.Bytes>>20, p.FilesDone, p.Files)
	case p.Phase != "" && p.Phase != roots.PhaseIdle:
		text += ", " + string(p.Phase)
	}
	if len(st.Problems) > 0 {
		text += "; " + st.Problems[0]
	}
	return text
}

func problemText(st roots.Status) string {
	if len(st.Problems) > 0 {
		return strings.Join(st.Problems, "; ")
	}
	return progressText(st)
}

// Check warns when this node's roots are not as the cluster's, or wait for an operator.
func (r *Roots) Check(context.Context) health.Result {
	if r.engine == nil || !r.opened.Load() {
		return health.Result{Level: health.OK}
	}
	st := r.engine.Status()
	switch {
	case !r.cfg.Serving() && !st.CaughtUp:
		return health.Result{
			Level: health.Fail, Reason: "file and pillar roots are not up to date yet: " + progressText(st),
			Hint: "saltclusterctl roots status shows how far they are",
		}
	case r.isLate(st):
		return health.Result{
			Level: health.Warn, Reason: "file and pillar roots are behind the cluster: " + problemText(st),
			Hint: "saltclusterctl roots status",
		}
	case len(st.Held) > 0:
		return health.Result{
			Level: health.Warn, Reason: fmt.Sprintf("revision %d of the roots deletes much and waits for a decision", st.Held[0]),
			Hint: fmt.Sprintf("saltclusterctl roots history, then roots confirm %d or roots drop %d", st.Held[0], st.Held[0]),
		}
	case len(st.Problems) > 0:
		return health.Result{Level: health.Warn, Reason: "file and pillar roots: " + problemText(st), Hint: "saltclusterctl roots status"}
	}
	return health.Result{Level: health.OK}
}

// isLate says whether this node has been behind for long.
func (r *Roots) isLate(st roots.Status) bool {
	if st.CaughtUp {
		r.behind.Store(0)
		return false
	}
	now := time.Now().UnixNano()
	r.behind.CompareAndSwap(0, now)
	return time.Duration(now-r.behind.Load()) > lateAfter
}

// Line is the roots' line of the status.
func (r *Roots) Line() *adminapi.RootsLine {
	rep := r.ownReport()
	line := &adminapi.RootsLine{
		Off: rep.Off, Mode: string(rep.Status.Mode), Base: rep.Status.Base, Head: rep.Status.Head, Phase: string(rep.Status.Progress.Phase),
		Conflicts: rep.Status.Conflicts,
	}
	for _, slot := range rep.Status.Slots {
		line.Files += slot.Files
	}
	return line
}
