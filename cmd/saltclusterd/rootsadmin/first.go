package rootsadmin

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/peer"
)

// firstWithin is how long a joiner is kept waiting for the founder's roots to be the cluster's. It is less than peer.Limits.JoinAdmit.
const firstWithin = 20 * time.Second

// AwaitFirst has a joiner wait until what this node has in its roots is the cluster's. Whoever proposes first gives its roots to
// all: a joiner with a few files is done with its own before a founder with many, whose would be put aside then.
func (r *Roots) AwaitFirst(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, firstWithin)
	defer cancel()
	for {
		lacking := r.lacksFirst()
		if lacking == "" {
			return nil
		}
		if !backoff.Sleep(ctx, poll) {
			return peer.Refusef("the file and pillar roots of %s, which founded the cluster, are not the cluster's yet (%s): try again, "+
				"saltclusterctl roots status there shows how far they are", r.cfg.Self, lacking)
		}
	}
}

// lacksFirst says what is still to be done before the roots of this node are the cluster's, if it is the only one that can have any.
func (r *Roots) lacksFirst() string {
	switch {
	case r.engine == nil, len(r.cfg.Others()) > 0:
		return ""
	case !r.opened.Load():
		return "they are not opened yet"
	}
	return firstLack(r.engine.Status())
}

// firstLack is lacksFirst of what the engine says. Manual roots have no first revision before an operator sends them.
func firstLack(st roots.Status) string {
	if st.Mode != roots.ModeAuto || st.Head > 0 {
		return ""
	}
	files := 0
	for _, slot := range st.Slots {
		switch {
		case slot.Unavailable == "":
			files += slot.Files
		case !slot.Missing: // there is a directory, and what is in it is not known
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
	lack := fmt.Sprintf("%d files are read", files)
	if len(st.Problems) > 0 {
		lack += "; " + st.Problems[0]
	}
	return lack
}
