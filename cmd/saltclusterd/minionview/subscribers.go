package minionview

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// PathSubscribers is the path at which a member lists the connections to its publish port.
const PathSubscribers = "/v1/subscribers"

var subscribersRPC = peerrpc.Endpoint[peerrpc.None, []adminapi.Subscriber]{
	Method: http.MethodGet, Path: PathSubscribers, MaxAnswer: 16 << 20,
}

// collectSubscribers lists the connections of minions to all nodes.
func (v *View) collectSubscribers(ctx context.Context) adminapi.Minions {
	out := adminapi.Minions{From: string(v.cfg.Self), Subscribers: []adminapi.Subscriber{}}
	if v.svc != nil {
		out.Subscribers = v.subscribers()
	}
	answers := askOthers(ctx, v.cfg, subscribersRPC, peerrpc.None{})
	for _, list := range answers.Of {
		out.Subscribers = append(out.Subscribers, list...)
	}
	out.Missing = answers.Missing()
	slices.SortFunc(out.Subscribers, func(a, b adminapi.Subscriber) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Remote, b.Remote))
	})
	return out
}

// subscribers lists the connections to this node.
func (v *View) subscribers() []adminapi.Subscriber {
	list, now := v.svc.Subscribers(), time.Now().UTC()
	out := make([]adminapi.Subscriber, 0, len(list))
	for _, s := range list {
		out = append(out, adminapi.Subscriber{
			Node: string(v.cfg.Self), Remote: s.Remote.String(), Silent: int(s.Heard.Seconds()),
			Since: now.Add(-s.Since).Truncate(time.Second),
		})
	}
	return out
}

func (v *View) listSubscribers(context.Context, node.ID, peerrpc.None) ([]adminapi.Subscriber, error) {
	return v.subscribers(), nil
}
