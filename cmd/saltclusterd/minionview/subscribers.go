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
	"saltclusterd/sidecar/edge"
)

// PathSubscribers is the path at which a member lists the connections to its publish port.
const PathSubscribers = "/v1/subscribers"

var subscribersRPC = peerrpc.Endpoint[peerrpc.None, []adminapi.Subscriber]{
	Method: http.MethodGet, Path: PathSubscribers, MaxAnswer: 16 << 20,
}

// Connections are the connections of minions to the publish ports of all nodes. A witness has none of its own.
type Connections struct {
	Self        node.ID
	Others      func() []node.ID // the other members that have a salt-master
	Client      peerrpc.Client
	Subscribers func() []edge.Subscriber // of this node
}

// Collect lists the connections to all nodes.
func (c Connections) Collect(ctx context.Context) adminapi.Minions {
	out := adminapi.Minions{From: string(c.Self), Subscribers: c.list()}
	answers := askOthers(ctx, c, subscribersRPC, peerrpc.None{})
	for _, list := range answers.Of {
		out.Subscribers = append(out.Subscribers, list...)
	}
	out.Missing = answers.Missing()
	slices.SortFunc(out.Subscribers, func(a, b adminapi.Subscriber) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Remote, b.Remote))
	})
	return out
}

// list lists the connections to this node.
func (c Connections) list() []adminapi.Subscriber {
	list, now := c.Subscribers(), time.Now().UTC()
	out := make([]adminapi.Subscriber, 0, len(list))
	for _, s := range list {
		out = append(out, adminapi.Subscriber{
			Node: string(c.Self), Remote: s.Remote.String(), Silent: int(s.Heard.Seconds()),
			Since: now.Add(-s.Since).Truncate(time.Second),
		})
	}
	return out
}

func (c Connections) answer(context.Context, node.ID, peerrpc.None) ([]adminapi.Subscriber, error) {
	return c.list(), nil
}
