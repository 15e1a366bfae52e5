package rootsadmin

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// Paths of calls between members about roots. Content is fetched at roots.Path.
const (
	PathStatus    = "/v1/roots/status"
	PathDiff      = "/v1/roots/diff"
	PathConflicts = "/v1/roots/conflicts"
)

const (
	maxAnswer = 8 << 20
	// maxList bounds the differences and conflicts that one answer holds.
	maxList = 10_000
	// diffTimeout bounds a comparison, which has to fetch trees.
	diffTimeout = 60 * time.Second
	// contentPlaces is how many requests for content of one member are worked on at a time. All members together have six
	// places.
	contentPlaces = 4
	// diffPlaces is that for comparisons.
	diffPlaces = 2
)

// report is how far the roots of a node are.
type report struct {
	Off    string       `json:"off,omitempty"` // why nothing is replicated there
	Notes  []string     `json:"notes,omitempty"`
	Paths  roots.Paths  `json:"paths,omitempty"` // of the slots
	Status roots.Status `json:"status"`
}

var (
	statusRPC = peerrpc.Endpoint[peerrpc.None, report]{
		Method: http.MethodGet, Path: PathStatus, MaxAnswer: maxAnswer,
	}
	conflictsRPC = peerrpc.Endpoint[peerrpc.None, []roots.Conflict]{
		Method: http.MethodGet, Path: PathConflicts, MaxAnswer: maxAnswer,
	}
	diffRPC = peerrpc.Endpoint[node.ID, []roots.Change]{
		Method: http.MethodGet, Path: PathDiff, MaxAnswer: maxAnswer,
		Encode: func(other node.ID) url.Values { return url.Values{"node": {string(other)}} },
		Decode: func(v url.Values) (node.ID, error) { return node.ID(v.Get("node")), nil },
	}
)

// Handle routes the calls of members.
func (r *Roots) Handle(mux *peerrpc.Mux) {
	mux.Handle(statusRPC.Pattern(), statusRPC.Handler(func(context.Context, node.ID, peerrpc.None) (report, error) {
		return r.ownReport(), nil
	}))
	if r.engine == nil {
		return
	}
	mux.Limit(roots.Path, contentPlaces)
	mux.Limit(PathDiff, diffPlaces)
	mux.Handle("POST "+roots.Path, r.whenOpen(r.engine.Handler()))
	mux.Handle(conflictsRPC.Pattern(), r.whenOpen(conflictsRPC.Handler(r.conflictsForPeer)))
	mux.Handle(diffRPC.Pattern(), r.whenOpen(diffRPC.Handler(r.diffForPeer)))
}

func (r *Roots) conflictsForPeer(context.Context, node.ID, peerrpc.None) ([]roots.Conflict, error) {
	return r.engine.Conflicts(maxList), nil
}

func (r *Roots) diffForPeer(ctx context.Context, _, other node.ID) ([]roots.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout)
	defer cancel()
	changes, err := r.engine.Diff(ctx, other)
	if err != nil {
		return nil, peerrpc.Unavailable(err.Error())
	}
	return clipList(changes), nil
}

// whenOpen answers members "starting" until the roots are open. That may be before minions are served.
func (r *Roots) whenOpen(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !r.opened.Load() {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, req)
	})
}

func clipList[T any](list []T) []T { return list[:min(len(list), maxList)] }

// starting is the reason why roots are off while they are being opened.
const starting = "starting"

// ownReport returns how far this node's roots are.
func (r *Roots) ownReport() report {
	out := report{Off: r.off, Notes: r.notes}
	if o := r.order; o != nil {
		out.Notes, out.Paths = slices.Concat(r.notes, o.notesForOperators()), o.self
	}
	if r.engine != nil && r.opened.Load() {
		out.Status = r.engine.Status()
	} else if out.Off == "" {
		out.Off = starting
	}
	return out
}

// masters lists the members that have a master, this node included.
func (r *Roots) masters() []node.ID {
	out := append(r.cfg.Others(), r.cfg.Self)
	slices.Sort(out)
	return out
}

// pathsOf asks a node for the directories of its slots.
func (r *Roots) pathsOf(ctx context.Context, id node.ID) (roots.Paths, error) {
	rep, err := r.reportOf(ctx, id)
	return rep.Paths, err
}

// reportOf asks a node.
func (r *Roots) reportOf(ctx context.Context, id node.ID) (report, error) {
	if id == r.cfg.Self {
		return r.ownReport(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	return statusRPC.Call(ctx, peerrpc.Client{HTTP: r.cfg.HTTP}, id, peerrpc.None{})
}

// conflictsOf asks a node what it has put aside.
func (r *Roots) conflictsOf(ctx context.Context, id node.ID) ([]roots.Conflict, error) {
	if id != r.cfg.Self {
		ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
		defer cancel()
		return conflictsRPC.Call(ctx, peerrpc.Client{HTTP: r.cfg.HTTP}, id, peerrpc.None{})
	}
	if err := r.checkUsable(); err != nil {
		return nil, err
	}
	return r.engine.Conflicts(maxList), nil
}

// diffOf has a node compare its roots with another's.
func (r *Roots) diffOf(ctx context.Context, id, other node.ID) ([]roots.Change, error) {
	ctx, cancel := context.WithTimeout(ctx, diffTimeout+peerrpc.Timeout) // the member's own timeout ends before
	defer cancel()
	if id != r.cfg.Self {
		return diffRPC.Call(ctx, peerrpc.Client{HTTP: r.cfg.HTTP}, id, other)
	}
	if err := r.checkUsable(); err != nil {
		return nil, err
	}
	changes, err := r.engine.Diff(ctx, other)
	return clipList(changes), err
}

// listConflicts asks all nodes with a master what they have put aside.
func (r *Roots) listConflicts(ctx context.Context) adminapi.RootsConflicts {
	masters := r.masters()
	answers := peerrpc.AskAll(ctx, masters, r.conflictsOf)
	out := adminapi.RootsConflicts{Conflicts: []adminapi.RootsConflict{}, Missing: answers.Missing()}
	for _, id := range masters {
		for _, c := range answers.Of[id] {
			out.Conflicts = append(out.Conflicts, adminapi.RootsConflict{
				Node: string(id), ID: c.ID, Slot: c.Slot.String(), Path: c.Path, Reason: c.Reason, Revision: c.Revision,
				Time: c.Time, Kept: c.Kept, Size: c.Size,
			})
		}
	}
	return out
}
