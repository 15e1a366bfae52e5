package rootsadmin

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	minPause = 5 * time.Millisecond // a node needs some tens of milliseconds for a file
	maxPause = 250 * time.Millisecond
)

// awaitRevision waits until a revision, or a later one, is on every node's disk, and reports progress. out gets what
// happened on each node, and which nodes did not get it before ctx ended.
func (r *Roots) awaitRevision(ctx context.Context, number uint64, out *adminapi.RootsOutcome, p admin.Progress) {
	texts := map[node.ID]string{}
	rev, _ := findRevision(r.cfg.Log.View(), number)
	for pause := minPause; ; pause = min(pause*5/4, maxPause) {
		masters := r.masters()
		reports := peerrpc.AskAll(ctx, masters, r.reportOf)
		if ctx.Err() != nil && len(out.Nodes) > 0 {
			return // the answers before say more
		}
		used := slotsInUse(reports)
		out.Nodes, out.Failed = out.Nodes[:0], nil
		waiting := false
		for _, id := range masters {
			row, text := appliedRow(id, reports, number, used)
			row.Author = row.Applied && id == rev.Author
			out.Nodes = append(out.Nodes, row)
			if row.Error != "" {
				out.Failed = append(out.Failed, row.Node)
			}
			down := reports.Failed[id] != nil && !r.cfg.Alive(id)
			waiting = waiting || !row.Applied && row.Skipped == "" && !down
			if text != texts[id] && text != "" {
				texts[id] = text
				p("apply", text, percentApplied(reports, number))
			}
		}
		if !waiting || !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// percentApplied returns how much of a revision is on the nodes that answer.
func percentApplied(reports peerrpc.Answers[report], number uint64) int {
	done, of := 0.0, 0
	for _, a := range reports.Of {
		if a.Off != "" {
			continue
		}
		of++
		switch p := a.Status.Progress; {
		case a.Status.Base >= number:
			done++
		case p.Phase == roots.PhaseFetch && p.Bytes > 0:
			done += float64(p.BytesDone) / float64(p.Bytes)
		}
	}
	if of == 0 {
		return 0
	}
	return int(100 * done / float64(of))
}

// appliedRow returns what a revision did on a node, and a sentence that says how far it is.
func appliedRow(
	id node.ID, reports peerrpc.Answers[report], number uint64, used map[string]bool,
) (row adminapi.RootsApplied, text string) {
	row = adminapi.RootsApplied{Node: string(id)}
	if err := reports.Failed[id]; err != nil {
		row.Error = "it does not answer: " + oneLine(peerrpc.Reason(err))
		return row, fmt.Sprintf("%s does not answer", id)
	}
	a := reports.Of[id]
	if a.Off != "" && a.Off != starting {
		row.Skipped = a.Off
		return row, fmt.Sprintf("%s is left out: %s", id, a.Off)
	}
	st := a.Status
	row.Revision, row.Applied = st.Base, st.Base >= number
	if !row.Applied {
		row.Error = problemText(st)
		return row, fmt.Sprintf("%s: %s", id, progressText(st))
	}
	if sw := st.LastSwitch; sw != nil && sw.Revision >= number {
		row.Installed, row.Removed, row.Kept, row.Aside, row.Took = sw.Installed, sw.Removed, sw.Kept, sw.Aside, sw.Took
	}
	for _, s := range st.Slots {
		if s.Dir != "" && s.Unavailable != "" && used[s.Name.String()] {
			row.Error = fmt.Sprintf("%s (%s) is left out: %s", s.Name, s.Dir, s.Unavailable)
		}
	}
	text = fmt.Sprintf("%s: revision %d is on disk: %d installed, %d removed", id, st.Base, row.Installed, row.Removed)
	return row, text
}

// slotsInUse returns the slots that have files on some node. One that is missing everywhere (/srv/spm is configured by
// default) is not a problem.
func slotsInUse(reports peerrpc.Answers[report]) map[string]bool {
	used := map[string]bool{}
	for _, a := range reports.Of {
		for _, s := range a.Status.Slots {
			if s.Unavailable == "" && s.Files > 0 {
				used[s.Name.String()] = true
			}
		}
	}
	return used
}
