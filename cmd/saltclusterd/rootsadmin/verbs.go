package rootsadmin

import (
	"context"
	"fmt"
	"slices"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

var _ admin.RootsKeeper = Verbs{}

// Verbs implement admin.RootsKeeper for a node with or without a cluster.
type Verbs struct {
	// Of returns the running roots, or an error for operators: this node is in no cluster, or is a witness.
	Of func() (*Roots, error)
	// View returns what the cluster has agreed on, or an error for operators: this node is in no cluster.
	View func() (state.View, error)
}

// replicatedRoots returns the running roots if they are replicated and open.
func (v Verbs) replicatedRoots() (*Roots, error) {
	r, err := v.Of()
	if err != nil {
		return nil, err
	}
	if err := r.checkUsable(); err != nil {
		return nil, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl roots status shows all nodes", "%v", err)
	}
	return r, nil
}

// RootsStatus implements admin.RootsKeeper.
func (v Verbs) RootsStatus(ctx context.Context) (adminapi.RootsStatus, error) {
	r, err := v.Of()
	if err != nil {
		return adminapi.RootsStatus{}, err
	}
	out := adminapi.RootsStatus{From: string(r.cfg.Self), Nodes: []adminapi.RootsNode{}}
	head, ok := headOf(r.cfg.Log.View())
	if ok {
		row := revisionRow(head, head.Number)
		out.Head = &row
	}
	masters := r.masters()
	reports := peerrpc.AskAll(ctx, masters, r.reportOf)
	for _, id := range masters {
		out.Nodes = append(out.Nodes, nodeRow(id, reports, head.Number))
	}
	return out, nil
}

// RootsHistory implements admin.RootsKeeper.
func (v Verbs) RootsHistory(context.Context) (adminapi.RootsHistory, error) {
	view, err := v.View()
	if err != nil {
		return adminapi.RootsHistory{}, err
	}
	head, _ := headOf(view)
	out := adminapi.RootsHistory{Revisions: []adminapi.RootsRevision{}}
	for _, rev := range revisionsOf(view) {
		out.Revisions = append(out.Revisions, revisionRow(rev, head.Number))
	}
	return out, nil
}

// RootsConflicts implements admin.RootsKeeper.
func (v Verbs) RootsConflicts(ctx context.Context) (adminapi.RootsConflicts, error) {
	r, err := v.Of()
	if err != nil {
		return adminapi.RootsConflicts{}, err
	}
	return r.listConflicts(ctx), nil
}

// RootsDiff implements admin.RootsKeeper.
func (v Verbs) RootsDiff(ctx context.Context, from, to string) (adminapi.RootsDiff, error) {
	r, err := v.Of()
	if err != nil {
		return adminapi.RootsDiff{}, err
	}
	for _, name := range []string{from, to} {
		if !slices.Contains(r.masters(), node.ID(name)) {
			return adminapi.RootsDiff{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl roots status lists them",
				"there is no node %q with roots", name)
		}
	}
	out := adminapi.RootsDiff{From: from, To: to, Changes: []adminapi.RootsChange{}}
	if from == to {
		return out, nil
	}
	for _, id := range []string{from, to} {
		left, err := r.checkComparable(ctx, node.ID(id))
		if err != nil {
			return out, err
		}
		out.LeftOut = append(out.LeftOut, left...)
	}
	changes, err := r.diffOf(ctx, node.ID(from), node.ID(to))
	if err != nil {
		return out, fmt.Errorf("compare %s with %s: %w", from, to, err)
	}
	out.Changes = changeRows(changes)
	return out, nil
}

// SyncRoots implements admin.RootsKeeper.
func (v Verbs) SyncRoots(ctx context.Context, q adminapi.SyncRootsRequest, p admin.Progress) (adminapi.Outcome, error) {
	r, err := v.replicatedRoots()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	p("scan", "reading the roots of "+string(r.cfg.Self))
	res, err := r.engine.Sync(ctx, roots.SyncOptions{
		DryRun: q.DryRun, Env: q.Env, Force: q.Force, Accept: q.Accept, Note: "sync_roots",
	})
	if err != nil {
		return adminapi.Outcome{}, explainRefusal("sync the roots", err)
	}
	out := newOutcome()
	out.Proposed, out.DryRun, out.Held = res.Proposed, q.DryRun, res.Held
	out.Changes, out.More = changeRows(res.Changes), res.More
	if res.Revision.Number > 0 {
		head, _ := headOf(r.cfg.Log.View())
		rev := revisionRow(res.Revision, head.Number)
		out.Revision = &rev
	}
	switch {
	case q.DryRun:
		return r.describeOutcome(out, fmt.Sprintf("%s would be sent", countChanges(out))), nil
	case res.Held:
		o := r.describeOutcome(out, fmt.Sprintf("revision %d deletes many files and waits for a decision", res.Revision.Number))
		o.Next = []string{
			fmt.Sprintf("saltclusterctl roots confirm %d", res.Revision.Number),
			fmt.Sprintf("or saltclusterctl roots drop %d", res.Revision.Number),
		}
		return o, nil
	}
	if q.Wait {
		r.awaitRevision(ctx, res.Revision.Number, out, p)
	}
	what := revisionText(res.Revision.Number, out.Nodes)
	if !q.Wait {
		what = fmt.Sprintf("revision %d is in force", res.Revision.Number)
	}
	return r.describeOutcome(out, what), nil
}

// DecideRoots implements admin.RootsKeeper.
func (v Verbs) DecideRoots(
	ctx context.Context, q adminapi.DecideRootsRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	r, err := v.replicatedRoots()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	number, what := q.Revision, ""
	switch q.Decision {
	case adminapi.RootsRollback:
		var rev roots.Revision
		rev, err = r.engine.Rollback(ctx, q.Revision)
		number = rev.Number
		what = fmt.Sprintf("the roots are as in revision %d again, as revision %d", q.Revision, rev.Number)
	case adminapi.RootsConfirm:
		_, err = r.proposeCommand(ctx, state.RootsConfirm{Number: q.Revision, Audit: state.Audit{Cause: "roots confirm"}})
		what = fmt.Sprintf("revision %d is in force", q.Revision)
	case adminapi.RootsDrop:
		_, err = r.proposeCommand(ctx, state.RootsDrop{Number: q.Revision, Audit: state.Audit{Cause: "roots drop"}})
		what = fmt.Sprintf("revision %d is dropped", q.Revision)
	default:
		err = adminapi.Errorf(adminapi.CodeInvalid, "", "invalid decision %q", q.Decision)
	}
	if err != nil {
		return adminapi.Outcome{}, explainRefusal(q.Decision, err)
	}
	out := newOutcome()
	out.Proposed = true
	if q.Wait && q.Decision != adminapi.RootsDrop {
		r.awaitRevision(ctx, number, out, p)
	}
	return r.describeOutcome(out, what), nil
}

// AsideRoots implements admin.RootsKeeper.
func (v Verbs) AsideRoots(
	ctx context.Context, q adminapi.AsideRootsRequest, _ admin.Progress,
) (adminapi.Outcome, error) {
	r, err := v.replicatedRoots()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	what := "it was put back on " + string(r.cfg.Self) + ", like any other edit"
	if q.Restore {
		err = r.engine.Resolve(ctx, q.ID)
	} else {
		err, what = r.engine.Drop(ctx, q.ID), "it is removed"
	}
	if err != nil {
		return adminapi.Outcome{}, r.refuseAside(ctx, q.ID, err)
	}
	return r.describeOutcome(newOutcome(), what), nil
}

// RefillRoots implements admin.RootsKeeper.
func (v Verbs) RefillRoots(
	ctx context.Context, q adminapi.RefillRootsRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	r, err := v.replicatedRoots()
	if err != nil {
		return adminapi.Outcome{}, err
	}
	p("refill", "fetching the content of the cluster to "+q.Dir)
	before := r.engine.Status().Conflicts
	if err := r.engine.Refill(ctx, q.Dir); err != nil {
		return adminapi.Outcome{}, explainRefusal("refill", err)
	}
	what := q.Dir + " has the content of the cluster"
	if n := r.engine.Status().Conflicts - before; n > 0 {
		what += fmt.Sprintf("; %d files that were in it were put aside (saltclusterctl roots conflicts)", n)
	}
	return r.describeOutcome(newOutcome(), what), nil
}
