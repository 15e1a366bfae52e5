package minionview

import (
	"cmp"
	"context"

	"saltclusterd/sidecar/adminapi"
)

// Errors of a witness.
var (
	ErrNoPresence = adminapi.Errorf(adminapi.CodeRefused, "ask another node", "a witness serves no minions")
	ErrNoEvents   = adminapi.Errorf(adminapi.CodeUnavailable, "ask a node with a salt-master", "a witness gets no events")
)

// Verbs implements admin.MinionViewer and admin.EventExplainer, with or without a membership. Each function returns
// what the running membership has, or why it has none.
type Verbs struct {
	Connections func() (Connections, error)
	Present     func() (*View, error)
	Events      func() (*View, error)
	Proofs      func() (*View, error)
}

// Minions lists the connections of minions to all nodes.
func (v Verbs) Minions(ctx context.Context) (adminapi.Minions, error) {
	connections, err := v.Connections()
	if err != nil {
		return adminapi.Minions{}, err
	}
	return connections.Collect(ctx), nil
}

// Presence lists the minions that are alive and those that are not.
func (v Verbs) Presence(ctx context.Context) (adminapi.Presence, error) {
	view, err := v.Present()
	switch {
	case err != nil:
		return adminapi.Presence{}, err
	case !view.cfg.Serving():
		return adminapi.Presence{}, adminapi.Errorf(adminapi.CodeUnavailable, "saltclusterctl status says what it waits for",
			"this node does not serve minions yet")
	}
	view.presence.refresh(ctx)
	list, missing := view.presence.result()
	out := adminapi.Presence{
		From: string(view.cfg.Self), Present: []adminapi.PresentMinion{}, Absent: []adminapi.PresentMinion{},
	}
	for _, id := range missing {
		out.Missing = append(out.Missing, string(id))
	}
	for _, m := range list {
		row := adminapi.PresentMinion{ID: m.ID, Node: cmp.Or(m.On, m.Node), Seen: m.At, Doubt: m.Doubt}
		if m.From.IsValid() {
			row.Address = m.From.String()
		}
		if m.Alive {
			out.Present = append(out.Present, row)
		} else {
			out.Absent = append(out.Absent, row)
		}
	}
	return out, nil
}

// ListProtocols lists which protocol version each accepted minion speaks.
func (v Verbs) ListProtocols(ctx context.Context) (adminapi.Protocols, error) {
	view, err := v.Proofs()
	if err != nil {
		return adminapi.Protocols{}, err
	}
	return view.protocols(ctx), nil
}

// ExplainEvent tells which nodes handle an event of a minion, and by which rule.
func (v Verbs) ExplainEvent(_ context.Context, minion, tag string) (adminapi.EventExplanation, error) {
	view, err := v.Events()
	if err != nil {
		return adminapi.EventExplanation{}, err
	}
	return view.explainEvent(minion, tag), nil
}

// HandledEvents lists the newest events that masters got, of one minion or, with an empty id, of all.
func (v Verbs) HandledEvents(ctx context.Context, minion string, limit int) (adminapi.HandledEvents, error) {
	view, err := v.Events()
	if err != nil {
		return adminapi.HandledEvents{}, err
	}
	return view.collectHandled(ctx, minion, limit), nil
}
