package mirror

import (
	"context"
	"io"
	"net/http"

	"saltclusterd/gossip/node"
)

// Path is where a node takes batches on its peer port.
const Path = "/v1/events"

// position is how far a sender has come.
type position struct{ run, next uint64 }

// Handler takes batches of other nodes; from tells which node asks. 200 means that the batch needs not come again.
func (m *Mirror) Handler(from func(context.Context) (node.ID, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peer, ok := from(r.Context())
		if !ok || r.Method != http.MethodPost {
			http.Error(w, "not a member", http.StatusForbidden)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBatch))
		if err != nil {
			http.Error(w, "batch not readable", http.StatusRequestEntityTooLarge)
			return
		}
		b, err := parseBatch(body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// Whoever sends it may go away meanwhile, and send it again: what is passed over now does not count then.
		m.fireBatch(context.WithoutCancel(r.Context()), peer, b)
	})
}

// fireBatch fires the events of a batch that have not been shown.
func (m *Mirror) fireBatch(ctx context.Context, from node.ID, b batch) {
	m.mu.Lock()
	defer m.mu.Unlock() // batches of one sender must not overtake each other; to fire is to queue
	p := m.positions[from]
	if p.run != b.run {
		p = position{run: b.run, next: b.first}
	}
	for i, e := range b.events {
		n := b.first + uint64(i)
		if n < p.next {
			continue
		}
		p.next = n + 1
		if !isUsable(e.tag) {
			m.metrics.dropped.WithLabelValues("tag").Inc()
			continue
		}
		if err := m.c.Bus.FireRaw(ctx, Prefix+string(from)+"/"+e.tag, e.data); err != nil {
			m.metrics.dropped.WithLabelValues("bus").Inc()
			m.c.Logger.Debug("event of another node not shown", "node", from, "err", err)
			continue
		}
		m.metrics.shown.Inc()
	}
	m.positions[from] = p
}
