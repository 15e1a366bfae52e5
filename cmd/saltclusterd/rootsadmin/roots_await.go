package rootsadmin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/peer"
)

const (
	pollInterval = 20 * time.Millisecond
	// firstTimeout bounds how long a joiner waits for the founder's roots. It is less than peer.Limits.JoinAdmit.
	firstTimeout = 20 * time.Second
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
		if !backoff.Sleep(ctx, pollInterval) {
			return ctx.Err()
		}
	}
}

// Pending says how far this node is with what the cluster has in force; empty if it has that, or if its roots are not
// replicated.
func (r *Roots) Pending() string {
	if r.engine == nil || r.engine.CaughtUp() {
		return ""
	}
	return progressText(r.engine.Status())
}

// progressText describes how far a node is with a revision.
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

// AwaitFirst waits until the roots of this node, which founded the cluster, are the cluster's. The node that proposes
// first gives its roots to all, and a joiner with few files would propose before a founder with many, whose files would
// be put aside.
func (r *Roots) AwaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstTimeout)
	defer cancel()
	for {
		pending := r.describeFirst()
		if pending == "" {
			return nil
		}
		if !backoff.Sleep(ctx, pollInterval) {
			return peer.Refusef("the cluster does not have the file and pillar roots of %s, its first node, yet (%s): "+
				"try again later; saltclusterctl roots status there shows the progress", r.cfg.Self, pending)
		}
	}
}

// describeFirst says what remains to be done before the roots of this node are the cluster's; empty if another member
// can have roots.
func (r *Roots) describeFirst() string {
	switch {
	case r.engine == nil, len(r.cfg.Others()) > 0:
		return ""
	case !r.opened.Load():
		return "they are not open yet"
	}
	return describeFirstOf(r.engine.Status())
}

// describeFirstOf is describeFirst for a status of the engine. Manual roots have no first revision before an operator
// sends them.
func describeFirstOf(st roots.Status) string {
	if st.Mode != roots.ModeAuto || st.Head > 0 {
		return ""
	}
	files := 0
	for _, slot := range st.Slots {
		switch {
		case slot.Unavailable == "":
			files += slot.Files
		case !slot.Missing: // the directory exists, and its content is not known
			return fmt.Sprintf("%s: %s", slot.Name, slot.Unavailable)
		}
	}
	switch {
	case st.LastScan.IsZero() && len(st.Problems) > 0:
		return st.Problems[0]
	case st.LastScan.IsZero():
		return "they are being read"
	case files == 0:
		return ""
	}
	pending := fmt.Sprintf("%d files have been read", files)
	if len(st.Problems) > 0 {
		pending += "; " + st.Problems[0]
	}
	return pending
}
