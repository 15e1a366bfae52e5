package daemon

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/eventlog"
)

const pathHeard = "/v1/events/heard"

// heardQuestion asks a node which events of minions its master got.
type heardQuestion struct {
	minion string // empty: all
	limit  int
}

var heardRPC = peerrpc.Endpoint[heardQuestion, []adminapi.HandledEvent]{
	Method: http.MethodGet, Path: pathHeard, MaxAnswer: 4 << 20,
	Encode: func(q heardQuestion) url.Values {
		return url.Values{"minion": {q.minion}, "limit": {strconv.Itoa(q.limit)}}
	},
	Decode: func(v url.Values) (heardQuestion, error) {
		limit, err := strconv.Atoi(v.Get("limit"))
		if err != nil || limit < 1 || limit > eventlog.Size {
			return heardQuestion{}, errors.New("invalid limit")
		}
		return heardQuestion{v.Get("minion"), limit}, nil
	},
}

// heard is what this node's master got, newest first, each with why it came here as things are now.
func (m *member) heard(minion string, limit int) []adminapi.HandledEvent {
	out, view := []adminapi.HandledEvent{}, m.routes()
	for _, e := range m.svc.heard.Newest(minion, limit) {
		x := view.ExplainEvent(e.Minion, e.Tag)
		out = append(out, adminapi.HandledEvent{
			Time: e.At, Node: string(m.d.id), Minion: e.Minion, Tag: e.Tag, From: cmp.Or(e.From, string(m.d.id)), Python: e.Python,
			Rule: x.Rule.Tag, Policy: x.Route, JID: x.JID, Elsewhere: !slices.Contains(x.Nodes, m.d.id),
		})
	}
	return out
}

func (m *member) listHeard(_ context.Context, _ node.ID, q heardQuestion) ([]adminapi.HandledEvent, error) {
	return m.heard(q.minion, q.limit), nil
}

// heardBy asks a node.
func (m *member) heardBy(ctx context.Context, id node.ID, minion string, limit int) (list []adminapi.HandledEvent, err error) {
	if id == m.d.id {
		return m.heard(minion, limit), nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	list, err = heardRPC.Call(ctx, m.client(), id, heardQuestion{minion, limit})
	for i := range list {
		list[i].Node = string(id) // whatever it says
	}
	return list, err
}

// HandledEvents implements admin.EventExplainer.
func (d *Daemon) HandledEvents(ctx context.Context, minion string, limit int) (adminapi.HandledEvents, error) {
	m := d.current()
	if m == nil {
		return adminapi.HandledEvents{}, d.errNoMember()
	}
	if m.svc == nil {
		return adminapi.HandledEvents{}, adminapi.Errorf(adminapi.CodeUnavailable, "ask a node with a salt-master", "a witness gets no events")
	}
	limit = min(max(limit, 1), eventlog.Size)
	out := adminapi.HandledEvents{From: string(d.id), Events: []adminapi.HandledEvent{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range m.masters() {
		wg.Go(func() {
			list, err := m.heardBy(ctx, id, minion, limit)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Missing = append(out.Missing, string(id))
			}
			out.Events = append(out.Events, list...)
		})
	}
	wg.Wait()
	slices.Sort(out.Missing)
	slices.SortStableFunc(out.Events, func(a, b adminapi.HandledEvent) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Node, b.Node))
	})
	out.Events = out.Events[:min(len(out.Events), limit)]
	return out, nil
}
