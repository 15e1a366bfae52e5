package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	rootsAskFirst = 5 * time.Millisecond // a node needs some tens of milliseconds for a file
	rootsAskMost  = 250 * time.Millisecond
)

// awaitRoots waits until a revision, or a later one, is on every node's disk, telling how far they are. out says what
// happened where, and which nodes did not come so far before ctx ended.
func (m *member) awaitRoots(ctx context.Context, number uint64, out *adminapi.RootsOutcome, p admin.Progress) {
	said := map[node.ID]string{}
	author, pause := m.rootsAuthor(number), rootsAskFirst
	for {
		reports := m.rootsReports(ctx)
		if ctx.Err() != nil && len(out.Nodes) > 0 {
			return // what was heard before says more
		}
		used := slotsInUse(reports)
		out.Nodes, out.Failed = out.Nodes[:0], nil
		waiting := false
		for _, id := range slices.Sorted(maps.Keys(reports)) {
			row, text := rootsApplied(id, reports[id], number, used)
			row.Author = row.Applied && id == author
			out.Nodes = append(out.Nodes, row)
			if row.Error != "" {
				out.Failed = append(out.Failed, row.Node)
			}
			waiting = waiting || !row.Applied && row.Skipped == "" && !m.rootsHopeless(id, reports[id])
			if text != said[id] && text != "" {
				said[id] = text
				p("apply", text, rootsDone(reports, number))
			}
		}
		if !waiting || !backoff.Sleep(ctx, pause) {
			return
		}
		pause = min(pause*5/4, rootsAskMost)
	}
}

// rootsDone is how much of a revision is on the nodes that can be asked, in percent.
func rootsDone(reports map[node.ID]reportOrError, number uint64) int {
	done, of := 0.0, 0
	for _, a := range reports {
		if a.err != nil || a.Off != "" {
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

// rootsHopeless says whether it makes no sense to wait for a node: it is down.
func (m *member) rootsHopeless(id node.ID, a reportOrError) bool { return a.err != nil && !m.alive(id) }

// rootsApplied is what a revision did on a node, and how far it is as a sentence.
func rootsApplied(id node.ID, a reportOrError, number uint64, used map[string]bool) (row adminapi.RootsApplied, text string) {
	row = adminapi.RootsApplied{Node: string(id)}
	if a.err != nil {
		row.Error = "it does not answer: " + oneLine(peerrpc.Reason(a.err))
		return row, fmt.Sprintf("%s does not answer", id)
	}
	if a.Off != "" && a.Off != startingRoots {
		row.Skipped = a.Off
		return row, fmt.Sprintf("%s is left out: %s", id, a.Off)
	}
	st := a.Status
	row.Revision, row.Applied = st.Base, st.Base >= number
	if !row.Applied {
		row.Error = rootsProblem(st)
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
	return row, fmt.Sprintf("%s: revision %d is on disk: %d installed, %d removed", id, st.Base, row.Installed, row.Removed)
}

// slotsInUse are those that have files on some node. One that is missing everywhere (/srv/spm is configured by default) is
// nobody's problem.
func slotsInUse(reports map[node.ID]reportOrError) map[string]bool {
	used := map[string]bool{}
	for _, r := range reports {
		for _, s := range r.Status.Slots {
			if s.Unavailable == "" && s.Files > 0 {
				used[s.Name.String()] = true
			}
		}
	}
	return used
}

func (m *member) rootsAuthor(number uint64) node.ID {
	for _, r := range m.cons.View().RootsRevisions() {
		if r.Number == number {
			return r.Author
		}
	}
	return ""
}
