package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/eventlog"
)

// pathHeard is where a node tells which events of minions its master got.
const pathHeard = "/v1/events/heard"

// maxHeard bounds such an answer.
const maxHeard = 4 << 20

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

func (m *member) handleHeard(w http.ResponseWriter, r *http.Request) {
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || limit < 1 || limit > eventlog.Size {
		http.Error(w, "how many?", http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(m.heard(r.URL.Query().Get("minion"), limit))
}

// heardBy asks a node.
func (m *member) heardBy(ctx context.Context, id node.ID, minion string, limit int) (list []adminapi.HandledEvent, err error) {
	if id == m.d.id {
		return m.heard(minion, limit), nil
	}
	ctx, cancel := context.WithTimeout(ctx, tellTimeout)
	defer cancel()
	body, err := m.call(ctx, http.MethodGet, id, pathHeard+"?"+url.Values{"minion": {minion}, "limit": {strconv.Itoa(limit)}}.Encode(), nil, maxHeard)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("events that %s got: %w", id, err)
	}
	for i := range list {
		list[i].Node = string(id) // whatever it says
	}
	return list, nil
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
