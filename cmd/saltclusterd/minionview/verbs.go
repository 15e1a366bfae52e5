package minionview

import (
	"cmp"
	"context"

	"saltclusterd/sidecar/adminapi"
)

// Verbs implements admin.MinionViewer and admin.EventExplainer, with or without a membership.
type Verbs struct {
	Of func() (*View, error) // the View of the running membership, or why there is none
}

// Minions lists the connections of minions to all nodes.
func (v Verbs) Minions(ctx context.Context) (adminapi.Minions, error) {
	view, err := v.Of()
	if err != nil {
		return adminapi.Minions{}, err
	}
	return view.collectSubscribers(ctx), nil
}

// Presence lists the minions that are alive and those that are not.
func (v Verbs) Presence(ctx context.Context) (adminapi.Presence, error) {
	view, err := v.Of()
	switch {
	case err != nil:
		return adminapi.Presence{}, err
	case view.svc == nil:
		return adminapi.Presence{}, adminapi.Errorf(adminapi.CodeRefused, "ask another node", "a witness serves no minions")
	case !view.svc.Serving():
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

// ExplainEvent tells which nodes handle an event of a minion, and by which rule.
func (v Verbs) ExplainEvent(_ context.Context, minion, tag string) (adminapi.EventExplanation, error) {
	view, err := v.withEvents()
	if err != nil {
		return adminapi.EventExplanation{}, err
	}
	return view.explainEvent(minion, tag), nil
}

// HandledEvents lists the newest events that masters got, of one minion or, with an empty id, of all.
func (v Verbs) HandledEvents(ctx context.Context, minion string, limit int) (adminapi.HandledEvents, error) {
	view, err := v.withEvents()
	if err != nil {
		return adminapi.HandledEvents{}, err
	}
	return view.collectHandled(ctx, minion, limit), nil
}

// withEvents returns the View of a node whose master gets events.
func (v Verbs) withEvents() (*View, error) {
	view, err := v.Of()
	if err == nil && view.svc == nil {
		err = adminapi.Errorf(adminapi.CodeUnavailable, "ask a node with a salt-master", "a witness gets no events")
	}
	return view, err
}
