package rootsadmin

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/consensus/state"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// checkComparable returns an error if the roots of a node cannot be compared with another's. left are its slots that
// are not compared.
func (r *Roots) checkComparable(ctx context.Context, id node.ID) (left []string, err error) {
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

// refuseAside returns the error for something that was put aside, with a hint if that is on another node.
func (r *Roots) refuseAside(ctx context.Context, id string, err error) error {
	if !errors.Is(err, roots.ErrNoConflict) {
		return explainRefusal("conflict "+id, err)
	}
	hint := "saltclusterctl roots conflicts lists them"
	for _, c := range r.listConflicts(ctx).Conflicts {
		if c.ID == id {
			hint = "it was put aside on " + c.Node + ": run the command there"
		}
	}
	return adminapi.Errorf(adminapi.CodeNotFound, hint, "nothing was put aside on this node as %s", id)
}

const historyLists = "saltclusterctl roots history lists them"

// explainRefusal gives an error of the engine the code that operators' scripts test, and a hint.
func explainRefusal(what string, err error) error {
	if e, ok := errors.AsType[*state.ResultError](err); ok {
		switch e.Result.Code {
		case state.NotFound:
			return adminapi.Errorf(adminapi.CodeNotFound, historyLists, "%s: %s", what, e.Result.Message)
		case state.Conflict:
			return adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl roots history shows what happened", "%s: %s", what, e.Result.Message)
		}
	}
	for _, known := range []struct {
		err  error
		code adminapi.Code
		hint string
	}{
		{roots.ErrNoRevision, adminapi.CodeNotFound, historyLists},
		{roots.ErrNoEnv, adminapi.CodeNotFound, "saltclusterctl roots status lists the directories"},
		{roots.ErrNoQuorum, adminapi.CodeNoQuorum, "saltclusterctl status"},
		{
			roots.ErrNotReplaced, adminapi.CodeRefused,
			"saltclusterctl roots status says which are excluded, and why; mount or create a missing one first",
		},
		{roots.ErrAcceptDry, adminapi.CodeRefused, "compare the directory with that of another node by hand"},
		{
			roots.ErrEdited, adminapi.CodeRefused,
			"wait until saltclusterctl roots status shows no edit, or run sync_roots; then try again",
		},
		{roots.ErrNotCurrent, adminapi.CodeRefused, "try again; saltclusterctl roots history shows what happened"},
	} {
		if errors.Is(err, known.err) {
			return adminapi.Errorf(known.code, known.hint, "%s: %v", what, err)
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}
