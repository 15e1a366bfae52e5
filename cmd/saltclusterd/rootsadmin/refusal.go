package rootsadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// revisionText says that a revision is everywhere, but for the nodes that leave their roots alone.
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

// canCompare says why the roots of a node cannot be compared with another's, nil when they can, but for what is left alone there.
func (r *Roots) canCompare(ctx context.Context, id node.ID) (left []string, err error) {
	rep, err := r.reportOf(ctx, id)
	switch {
	case err != nil:
		return nil, adminapi.Errorf(adminapi.CodeUnreachable, "saltclusterctl members", "%s does not answer: %v", id, err)
	case rep.Off != "":
		return nil, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl roots status shows all nodes",
			"%s has no replicated roots that could be compared: %s", id, rep.Off)
	}
	for _, slot := range rep.Status.Slots {
		if slot.Lacking {
			left = append(left, fmt.Sprintf("%s leaves %s alone: %s", id, slot.Name, slot.Unavailable))
		}
	}
	return left, nil
}

// refuseAside explains why nothing can be done on this node with something that was put aside; on another node it perhaps can.
func (r *Roots) refuseAside(ctx context.Context, id string, err error) error {
	if !errors.Is(err, roots.ErrNoConflict) {
		return refuse("conflict "+id, err)
	}
	hint := "saltclusterctl roots conflicts lists them"
	for _, c := range r.listConflicts(ctx).Conflicts {
		if c.ID == id {
			hint = "it was put aside on " + c.Node + ": say so there"
		}
	}
	return adminapi.Errorf(adminapi.CodeNotFound, hint, "nothing was put aside on this node as %s", id)
}

const historyLists = "saltclusterctl roots history lists them"

// refuse gives an error of the engine the code that scripts of operators test.
func refuse(what string, err error) error {
	if result, ok := errors.AsType[*state.ResultError](err); ok && result.Result.Code == state.NotFound { // its words, without the code
		return adminapi.Errorf(adminapi.CodeNotFound, historyLists, "%s: %s", what, result.Result.Message)
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
