package rootsadmin

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

func nodeRow(id node.ID, reports peerrpc.Answers[report], head uint64) adminapi.RootsNode {
	n := adminapi.RootsNode{Node: string(id), Slots: []adminapi.RootsSlot{}}
	if err := reports.Failed[id]; err != nil {
		n.Error = peerrpc.Reason(err)
		return n
	}
	a := reports.Of[id]
	st := a.Status
	n.Off, n.Notes, n.Mode, n.Problems = a.Off, a.Notes, string(st.Mode), st.Problems
	n.Revision, n.Current, n.Edited, n.Conflicts = st.Base, a.Off == "" && st.Base >= head, st.Edited, st.Conflicts
	n.Phase, n.Files, n.FilesDone = string(st.Progress.Phase), st.Progress.Files, st.Progress.FilesDone
	n.Bytes, n.BytesDone = st.Progress.Bytes, st.Progress.BytesDone
	n.Watching, n.LastScan = st.Watching, st.LastScan
	if a.Off == "" && !st.Watching && !st.LastScan.IsZero() {
		n.Notes = append(slices.Clone(n.Notes),
			"the kernel does not report edits (fs.inotify.max_user_watches); saltclusterd scans for them periodically")
	}
	if st.LastSwitch != nil {
		n.LastSwitch = st.LastSwitch.At
	}
	for _, s := range st.Slots {
		n.Slots = append(n.Slots, adminapi.RootsSlot{
			Slot: s.Name.String(), Dir: s.Dir, Unavailable: s.Unavailable, Replaced: s.Replaced, Files: s.Files, Bytes: s.Bytes,
		})
	}
	return n
}

func revisionRow(r roots.Revision, head uint64) adminapi.RootsRevision {
	return adminapi.RootsRevision{
		Number: r.Number, Parent: r.Parent, Root: r.Root.String(), Author: string(r.Author),
		Time: time.UnixMilli(int64(r.Time >> 16)), Kind: string(r.Kind), State: string(r.State), Current: r.Number == head,
		Files: r.Stats.Files, Bytes: r.Stats.Bytes, Changed: r.Stats.Changed, Removed: r.Stats.Removed, Note: r.Note,
	}
}

func changeRows(changes []roots.Change) []adminapi.RootsChange {
	out := make([]adminapi.RootsChange, 0, len(changes))
	for _, c := range changes {
		out = append(out, adminapi.RootsChange{
			Slot: c.Slot.String(), Path: c.Path, What: c.What, From: c.From, To: c.To, Size: c.Size,
		})
	}
	return out
}

func countChanges(o *adminapi.RootsOutcome) string {
	if n := len(o.Changes) + o.More; n != 1 {
		return fmt.Sprintf("%d changes", n)
	}
	return "1 change"
}

func newOutcome() *adminapi.RootsOutcome {
	return &adminapi.RootsOutcome{Changes: []adminapi.RootsChange{}, Nodes: []adminapi.RootsApplied{}}
}

// describeOutcome describes how an operation on the roots ended.
func (r *Roots) describeOutcome(o *adminapi.RootsOutcome, what string) adminapi.Outcome {
	out := r.cfg.Outcome()
	out.Message, out.Roots = what, o
	if len(o.Failed) > 0 {
		out.Message = "not on all nodes: " + strings.Join(o.Failed, ", ")
		out.Next = []string{"saltclusterctl roots status"}
	}
	return out
}

// revisionText says that a revision is on all nodes but those that leave their roots alone.
func revisionText(number uint64, nodes []adminapi.RootsApplied) string {
	var out []string
	for _, n := range nodes {
		if n.Skipped != "" {
			out = append(out, n.Node)
		}
	}
	if len(out) == 0 {
		return fmt.Sprintf("revision %d is on all nodes", number)
	}
	return fmt.Sprintf("revision %d is on all nodes but %s", number, strings.Join(out, ", "))
}
