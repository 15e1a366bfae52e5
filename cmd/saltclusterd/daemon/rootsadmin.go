package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

var _ admin.RootsKeeper = (*Daemon)(nil)

// rootsMember is the membership whose roots an operator asks about.
func (d *Daemon) rootsMember() (*member, error) {
	m := d.current()
	switch {
	case m == nil:
		return nil, d.errNoMember()
	case m.svc == nil:
		return nil, adminapi.Errorf(adminapi.CodeRefused, "ask on a node with a salt-master", "this node is a witness and has no roots")
	}
	return m, nil
}

// keptMember is one whose roots are replicated.
func (d *Daemon) keptMember() (*member, error) {
	m, err := d.rootsMember()
	if err != nil {
		return nil, err
	}
	if err := m.rootsKept(); err != nil {
		return nil, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl roots status shows all nodes", "%v", err)
	}
	return m, nil
}

// masters lists the members that have roots, this node's too.
func (m *member) masters() []node.ID {
	out := append(m.otherMasters(), m.d.id)
	slices.Sort(out)
	return out
}

// RootsStatus implements admin.RootsKeeper.
func (d *Daemon) RootsStatus(ctx context.Context) (adminapi.RootsStatus, error) {
	m, err := d.rootsMember()
	if err != nil {
		return adminapi.RootsStatus{}, err
	}
	out := adminapi.RootsStatus{From: string(d.id), Nodes: []adminapi.RootsNode{}}
	head, ok := rootsLog{m}.Head()
	if ok {
		r := rootsRevision(head, head.Number)
		out.Head = &r
	}
	for id, a := range m.rootsReports(ctx) {
		out.Nodes = append(out.Nodes, rootsNode(id, a, head.Number))
	}
	slices.SortFunc(out.Nodes, func(a, b adminapi.RootsNode) int { return strings.Compare(a.Node, b.Node) })
	return out, nil
}

// reportOrError is a node's word, or why there is none.
type reportOrError struct {
	rootsReport
	err error
}

// rootsReports asks all nodes at once.
func (m *member) rootsReports(ctx context.Context) map[node.ID]reportOrError {
	out := map[node.ID]reportOrError{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range m.masters() {
		wg.Go(func() {
			r, err := m.rootsReportOf(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			out[id] = reportOrError{r, err}
		})
	}
	wg.Wait()
	return out
}

func rootsNode(id node.ID, a reportOrError, head uint64) adminapi.RootsNode {
	n := adminapi.RootsNode{Node: string(id), Slots: []adminapi.RootsSlot{}}
	if a.err != nil {
		n.Error = peerrpc.Reason(a.err)
		return n
	}
	st := a.Status
	n.Off, n.Notes, n.Mode, n.Problems = a.Off, a.Notes, string(st.Mode), st.Problems
	n.Revision, n.Current, n.Edited, n.Conflicts = st.Base, a.Off == "" && st.Base >= head, st.Edited, st.Conflicts
	n.Phase, n.Files, n.FilesDone = string(st.Progress.Phase), st.Progress.Files, st.Progress.FilesDone
	n.Bytes, n.BytesDone = st.Progress.Bytes, st.Progress.BytesDone
	n.Watching, n.LastScan = st.Watching, st.LastScan
	if a.Off == "" && !st.Watching && !st.LastScan.IsZero() {
		n.Notes = append(slices.Clone(n.Notes), "the kernel gives no hints about edits (fs.inotify.max_user_watches); they are looked for from time to time")
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

func rootsRevision(r roots.Revision, head uint64) adminapi.RootsRevision {
	return adminapi.RootsRevision{
		Number: r.Number, Parent: r.Parent, Root: r.Root.String(), Author: string(r.Author), Time: time.UnixMilli(int64(r.Time >> 16)),
		Kind: string(r.Kind), State: string(r.State), Current: r.Number == head, Files: r.Stats.Files, Bytes: r.Stats.Bytes,
		Changed: r.Stats.Changed, Removed: r.Stats.Removed, Note: r.Note,
	}
}

func rootsChanges(changes []roots.Change) []adminapi.RootsChange {
	out := make([]adminapi.RootsChange, 0, len(changes))
	for _, c := range changes {
		out = append(out, adminapi.RootsChange{
			Slot: c.Slot.String(), Path: c.Path, What: c.What, From: c.From, To: c.To, Size: c.Size,
		})
	}
	return out
}

// RootsHistory implements admin.RootsKeeper.
func (d *Daemon) RootsHistory(context.Context) (adminapi.RootsHistory, error) {
	m := d.current()
	if m == nil {
		return adminapi.RootsHistory{}, d.errNoMember()
	}
	head, _ := rootsLog{m}.Head()
	out := adminapi.RootsHistory{Revisions: []adminapi.RootsRevision{}}
	for _, r := range (rootsLog{m}).Revisions() {
		out.Revisions = append(out.Revisions, rootsRevision(r, head.Number))
	}
	return out, nil
}

// RootsConflicts implements admin.RootsKeeper.
func (d *Daemon) RootsConflicts(ctx context.Context) (adminapi.RootsConflicts, error) {
	m, err := d.rootsMember()
	if err != nil {
		return adminapi.RootsConflicts{}, err
	}
	out := adminapi.RootsConflicts{Conflicts: []adminapi.RootsConflict{}}
	for _, id := range m.masters() {
		list, err := m.rootsConflictsOf(ctx, id)
		if err != nil {
			out.Missing = append(out.Missing, string(id))
			continue
		}
		for _, c := range list {
			out.Conflicts = append(out.Conflicts, adminapi.RootsConflict{
				Node: string(id), ID: c.ID, Slot: c.Slot.String(), Path: c.Path, Reason: c.Reason, Revision: c.Revision,
				Time: c.Time, Kept: c.Kept, Size: c.Size,
			})
		}
	}
	return out, nil
}

// RootsDiff implements admin.RootsKeeper.
func (d *Daemon) RootsDiff(ctx context.Context, from, to string) (adminapi.RootsDiff, error) {
	m, err := d.rootsMember()
	if err != nil {
		return adminapi.RootsDiff{}, err
	}
	for _, name := range []string{from, to} {
		if !slices.Contains(m.masters(), node.ID(name)) {
			return adminapi.RootsDiff{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl roots status lists them", "%q is no node with roots", name)
		}
	}
	out := adminapi.RootsDiff{From: from, To: to, Changes: []adminapi.RootsChange{}}
	if from == to {
		return out, nil
	}
	for _, id := range []string{from, to} {
		left, err := m.canCompare(ctx, node.ID(id))
		if err != nil {
			return out, err
		}
		out.LeftOut = append(out.LeftOut, left...)
	}
	changes, err := m.rootsDiffOf(ctx, node.ID(from), node.ID(to))
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	out.Changes = rootsChanges(changes)
	return out, nil
}

// SyncRoots implements admin.RootsKeeper.
func (d *Daemon) SyncRoots(ctx context.Context, r adminapi.SyncRootsRequest, p admin.Progress) (adminapi.Outcome, error) {
	m, err := d.keptMember()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	p("scan", "looking at the roots of "+string(d.id))
	res, err := m.svc.trees.Sync(ctx, roots.SyncOptions{DryRun: r.DryRun, Env: r.Env, Force: r.Force, Accept: r.Accept, Note: "sync_roots"})
	if err != nil {
		return adminapi.Outcome{}, rootsRefusal("sync the roots", err)
	}
	out := &adminapi.RootsOutcome{
		Proposed: res.Proposed, DryRun: r.DryRun, Held: res.Held, Changes: rootsChanges(res.Changes), More: res.More,
		Nodes: []adminapi.RootsApplied{},
	}
	if res.Revision.Number > 0 {
		head, _ := rootsLog{m}.Head()
		rev := rootsRevision(res.Revision, head.Number)
		out.Revision = &rev
	}
	switch {
	case r.DryRun:
		return m.rootsOutcome(out, fmt.Sprintf("%s would be sent", countChanges(out))), nil
	case res.Held:
		o := m.rootsOutcome(out, fmt.Sprintf("revision %d deletes much and waits for a decision", res.Revision.Number))
		o.Next = []string{
			fmt.Sprintf("saltclusterctl roots confirm %d", res.Revision.Number), fmt.Sprintf("or saltclusterctl roots drop %d", res.Revision.Number),
		}
		return o, nil
	}
	if r.Wait {
		m.awaitRoots(ctx, res.Revision.Number, out, p)
	}
	what := onNodes(res.Revision.Number, out.Nodes)
	if !r.Wait {
		what = fmt.Sprintf("revision %d is in force", res.Revision.Number)
	}
	return m.rootsOutcome(out, what), nil
}

func countChanges(o *adminapi.RootsOutcome) string {
	if n := len(o.Changes) + o.More; n != 1 {
		return fmt.Sprintf("%d changes", n)
	}
	return "1 change"
}

const historyLists = "saltclusterctl roots history lists them"

// rootsRefusal gives an error of the engine the code that an operator's script looks at.
func rootsRefusal(what string, err error) error {
	if r, ok := errors.AsType[*state.ResultError](err); ok && r.Result.Code == state.NotFound { // its words, without the code
		return adminapi.Errorf(adminapi.CodeNotFound, historyLists, "%s: %s", what, r.Result.Message)
	}
	switch {
	case errors.Is(err, roots.ErrNoRevision):
		return adminapi.Errorf(adminapi.CodeNotFound, historyLists, "%s: %v", what, err)
	case errors.Is(err, roots.ErrNoEnv):
		return adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl roots status lists the directories", "%s: %v", what, err)
	case errors.Is(err, roots.ErrNoQuorum):
		return adminapi.Errorf(adminapi.CodeNoQuorum, "saltclusterctl status", "%s: %v", what, err)
	case errors.Is(err, roots.ErrNotReplaced):
		return adminapi.Errorf(adminapi.CodeRefused,
			"saltclusterctl roots status says which are left alone, and why; a missing one is to be mounted, or made, first", "%s: %v", what, err)
	case errors.Is(err, roots.ErrAcceptDry):
		return adminapi.Errorf(adminapi.CodeRefused, "compare the directory with that of another node by hand", "%s: %v", what, err)
	case errors.Is(err, roots.ErrNotCurrent):
		return adminapi.Errorf(adminapi.CodeRefused, "try again; saltclusterctl roots history shows what happened", "%s: %v", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// rootsOutcome is how an operation on the roots ended.
func (m *member) rootsOutcome(o *adminapi.RootsOutcome, what string) adminapi.Outcome {
	out := adminapi.Outcome{
		Node: string(m.d.id), ClusterID: m.seed.ClusterID, UUID: m.seed.UUID, Role: adminapi.RoleLearner, Ready: m.ready(),
		Message: what, Roots: o,
	}
	if m.isVoter(m.cons.Status()) {
		out.Role = adminapi.RoleVoter
	}
	if len(o.Failed) > 0 {
		out.Message = "not on all nodes: " + strings.Join(o.Failed, ", ")
		out.Next = []string{"saltclusterctl roots status"}
	}
	return out
}

// DecideRoots implements admin.RootsKeeper.
func (d *Daemon) DecideRoots(ctx context.Context, r adminapi.DecideRootsRequest, p admin.Progress) (adminapi.Outcome, error) {
	m, err := d.keptMember()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	number, what := r.Revision, ""
	switch r.Decision {
	case adminapi.RootsRollback:
		var rev roots.Revision
		rev, err = m.svc.trees.Rollback(ctx, r.Revision)
		number, what = rev.Number, fmt.Sprintf("the roots are as in revision %d again, as revision %d", r.Revision, rev.Number)
	case adminapi.RootsConfirm:
		_, err = m.proposeRoots(ctx, state.RootsConfirm{Number: r.Revision, Audit: m.audit("roots confirm")})
		what = fmt.Sprintf("revision %d is in force", r.Revision)
	case adminapi.RootsDrop:
		_, err = m.proposeRoots(ctx, state.RootsDrop{Number: r.Revision, Audit: m.audit("roots drop")})
		what = fmt.Sprintf("revision %d is dropped", r.Revision)
	default:
		err = adminapi.Errorf(adminapi.CodeInvalid, "", "%q is no decision", r.Decision)
	}
	if err != nil {
		return adminapi.Outcome{}, rootsRefusal(r.Decision, err)
	}
	out := &adminapi.RootsOutcome{Proposed: true, Changes: []adminapi.RootsChange{}, Nodes: []adminapi.RootsApplied{}}
	if r.Wait && r.Decision != adminapi.RootsDrop {
		m.awaitRoots(ctx, number, out, p)
	}
	return m.rootsOutcome(out, what), nil
}

// AsideRoots implements admin.RootsKeeper.
func (d *Daemon) AsideRoots(ctx context.Context, r adminapi.AsideRootsRequest, _ admin.Progress) (adminapi.Outcome, error) {
	m, err := d.keptMember()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	what := "it is live again on " + string(d.id) + ", an edit like any other"
	if r.Restore {
		err = m.svc.trees.Resolve(ctx, r.ID)
	} else {
		err, what = m.svc.trees.Drop(ctx, r.ID), "it is removed"
	}
	if err != nil {
		return adminapi.Outcome{}, d.asideRefusal(ctx, r.ID, err)
	}
	return m.rootsOutcome(&adminapi.RootsOutcome{Changes: []adminapi.RootsChange{}, Nodes: []adminapi.RootsApplied{}}, what), nil
}

// RefillRoots implements admin.RootsKeeper.
func (d *Daemon) RefillRoots(ctx context.Context, r adminapi.RefillRootsRequest, p admin.Progress) (adminapi.Outcome, error) {
	m, err := d.keptMember()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	p("refill", "bringing what the cluster has to "+r.Dir)
	before := len(m.svc.trees.Conflicts())
	if err := m.svc.trees.Refill(ctx, r.Dir); err != nil {
		return adminapi.Outcome{}, rootsRefusal("refill", err)
	}
	what := r.Dir + " has what the cluster has"
	if n := len(m.svc.trees.Conflicts()) - before; n > 0 {
		what += fmt.Sprintf("; of what was in it %d files were put aside (saltclusterctl roots conflicts)", n)
	}
	return m.rootsOutcome(&adminapi.RootsOutcome{Changes: []adminapi.RootsChange{}, Nodes: []adminapi.RootsApplied{}}, what), nil
}
