package daemon

import (
	"context"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// ExplainEvent implements admin.EventExplainer.
func (d *Daemon) ExplainEvent(_ context.Context, minion, tag string) (adminapi.EventExplanation, error) {
	m := d.current()
	if m == nil {
		return adminapi.EventExplanation{}, d.errNoMember()
	}
	if m.svc == nil {
		return adminapi.EventExplanation{}, adminapi.Errorf(adminapi.CodeUnavailable, "ask a node with a salt-master", "a witness gets no events")
	}
	x := m.routes().ExplainEvent(minion, tag)
	return adminapi.EventExplanation{
		From: string(d.id), Minion: minion, Tag: tag, Rule: x.Rule.Tag, Policy: x.Route, JID: x.JID,
		Nodes: names(x.Nodes), Others: names(x.Others),
	}, nil
}

func names(ids []node.ID) []string {
	out := make([]string, 0, len(ids))
	for _, id := range ids {
		out = append(out, string(id))
	}
	return out
}
