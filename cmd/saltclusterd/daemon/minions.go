package daemon

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

const pathSubscribers = "/v1/subscribers"

// A node lists who is connected to its publish port.
var subscribersRPC = peerrpc.Endpoint[peerrpc.None, []adminapi.Subscriber]{Method: http.MethodGet, Path: pathSubscribers, MaxAnswer: 16 << 20}

// Minions implements admin.Reporter.
func (d *Daemon) Minions(ctx context.Context) (adminapi.Minions, error) {
	m := d.current()
	if m == nil {
		return adminapi.Minions{}, d.errNoMember()
	}
	out := adminapi.Minions{From: string(d.id), Subscribers: []adminapi.Subscriber{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	for _, n := range m.routes().Nodes {
		wg.Go(func() {
			list, err := m.subscribersOf(ctx, n.ID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Missing = append(out.Missing, string(n.ID))
			}
			out.Subscribers = append(out.Subscribers, list...)
		})
	}
	wg.Wait()
	slices.Sort(out.Missing)
	slices.SortFunc(out.Subscribers, func(a, b adminapi.Subscriber) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Remote, b.Remote))
	})
	return out, nil
}

func (m *member) subscribersOf(ctx context.Context, id node.ID) ([]adminapi.Subscriber, error) {
	if id == m.d.id {
		return m.subscribers(), nil
	}
	return subscribersRPC.Call(ctx, m.client(), id, peerrpc.None{})
}

// subscribers lists who is connected here.
func (m *member) subscribers() []adminapi.Subscriber {
	list, now := m.svc.pub.Subscribers(), time.Now().UTC()
	out := make([]adminapi.Subscriber, 0, len(list))
	for _, s := range list {
		out = append(out, adminapi.Subscriber{
			Node: string(m.d.id), Remote: s.Remote.String(), Silent: int(s.Heard.Seconds()), Since: now.Add(-s.Since).Truncate(time.Second),
		})
	}
	return out
}

func (m *member) listSubscribers(context.Context, node.ID, peerrpc.None) ([]adminapi.Subscriber, error) {
	return m.subscribers(), nil
}
