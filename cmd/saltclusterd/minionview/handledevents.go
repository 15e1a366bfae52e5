package minionview

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/eventlog"
)

// PathHandledEvents is the path at which a member lists the events of minions that its master got.
const PathHandledEvents = "/v1/events/heard"

type handledQuestion struct {
	minion string // empty: all
	limit  int
}

var handledRPC = peerrpc.Endpoint[handledQuestion, []adminapi.HandledEvent]{
	Method: http.MethodGet, Path: PathHandledEvents, MaxAnswer: 4 << 20,
	Encode: func(q handledQuestion) url.Values {
		return url.Values{"minion": {q.minion}, "limit": {strconv.Itoa(q.limit)}}
	},
	Decode: func(v url.Values) (handledQuestion, error) {
		limit, err := strconv.Atoi(v.Get("limit"))
		if err != nil || limit < 1 || limit > eventlog.Size {
			return handledQuestion{}, errors.New("invalid limit")
		}
		return handledQuestion{v.Get("minion"), limit}, nil
	},
}

// collectHandled lists the newest events that the masters got.
func (v *View) collectHandled(ctx context.Context, minion string, limit int) adminapi.HandledEvents {
	q := handledQuestion{minion, min(max(limit, 1), eventlog.Size)}
	out := adminapi.HandledEvents{From: string(v.cfg.Self), Events: v.handledEvents(q)}
	answers := askOthers(ctx, v.cfg.Connections, handledRPC, q)
	for id, list := range answers.Of {
		for _, e := range list {
			e.Node = string(id) // whatever the member reports
			out.Events = append(out.Events, e)
		}
	}
	out.Missing = answers.Missing()
	slices.SortStableFunc(out.Events, func(a, b adminapi.HandledEvent) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Node, b.Node))
	})
	out.Events = out.Events[:min(len(out.Events), q.limit)]
	return out
}

// handledEvents lists the events that the local master got, newest first. Each says how it would be routed now.
func (v *View) handledEvents(q handledQuestion) []adminapi.HandledEvent {
	out, routes := []adminapi.HandledEvent{}, v.cfg.Routes()
	self := string(v.cfg.Self)
	for _, e := range v.cfg.Events.Newest(q.minion, q.limit) {
		x := routes.ExplainEvent(e.Minion, e.Tag)
		out = append(out, adminapi.HandledEvent{
			Time: e.At, Node: self, Minion: e.Minion, Tag: e.Tag, From: cmp.Or(e.From, self), Python: e.Python,
			Rule: x.Rule.Tag, Policy: x.Route, JID: x.JID, Elsewhere: !slices.Contains(x.Nodes, v.cfg.Self),
		})
	}
	return out
}

func (v *View) listHandled(_ context.Context, _ node.ID, q handledQuestion) ([]adminapi.HandledEvent, error) {
	return v.handledEvents(q), nil
}

// explainEvent tells which nodes handle an event of a minion.
func (v *View) explainEvent(minion, tag string) adminapi.EventExplanation {
	x := v.cfg.Routes().ExplainEvent(minion, tag)
	return adminapi.EventExplanation{
		From: string(v.cfg.Self), Minion: minion, Tag: tag, Rule: x.Rule.Tag, Policy: x.Route, JID: x.JID,
		Nodes: node.Strings(x.Nodes), Others: node.Strings(x.Others),
	}
}
