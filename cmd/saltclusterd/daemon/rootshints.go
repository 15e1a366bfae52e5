package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// onNodes says that a revision is everywhere, but for the nodes that leave their roots alone.
func onNodes(number uint64, nodes []adminapi.RootsApplied) string {
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
func (m *member) canCompare(ctx context.Context, id node.ID) (left []string, err error) {
	r, err := m.rootsReportOf(ctx, id)
	switch {
	case err != nil:
		return nil, adminapi.Errorf(adminapi.CodeUnreachable, "saltclusterctl members", "%s does not answer: %v", id, err)
	case r.Off != "":
		return nil, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl roots status shows all nodes",
			"%s has no replicated roots that could be compared: %s", id, r.Off)
	}
	for _, slot := range r.Status.Slots {
		if slot.Lacking {
			left = append(left, fmt.Sprintf("%s leaves %s alone: %s", id, slot.Name, slot.Unavailable))
		}
	}
	return left, nil
}

// asideRefusal explains why something that was put aside cannot be decided about; on another node it perhaps can.
func (d *Daemon) asideRefusal(ctx context.Context, id string, err error) error {
	if !errors.Is(err, roots.ErrNoConflict) {
		return rootsRefusal("conflict "+id, err)
	}
	hint := "saltclusterctl roots conflicts lists them"
	if list, err := d.RootsConflicts(ctx); err == nil {
		for _, c := range list.Conflicts {
			if c.ID == id {
				hint = "it was put aside on " + c.Node + ": say so there"
			}
		}
	}
	return adminapi.Errorf(adminapi.CodeNotFound, hint, "nothing was put aside on this node as %s", id)
}
