package sidecar

import (
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// handedLogEvery is how often at most it is logged of one node that what it handed over was refused.
const handedLogEvery = time.Minute

// handed tells which node has handed over what was refused: the address that the refusal is logged with is that node's
// word only.
type handed struct {
	log     *slog.Logger
	refused *prometheus.CounterVec

	mu   sync.Mutex
	next map[node.ID]time.Time // of whom nothing is logged before; whose time has come need not stand here
}

func newHanded(log *slog.Logger, refused *prometheus.CounterVec) *handed {
	return &handed{log: log, refused: refused, next: map[node.ID]time.Time{}}
}

// refusalFunc returns what notes a refusal of a request that a node has handed over.
func (h *handed) refusalFunc(from node.ID) func() { return func() { h.noteRefusal(from, time.Now()) } }

func (h *handed) noteRefusal(from node.ID, now time.Time) {
	h.refused.WithLabelValues(string(from)).Inc()
	h.mu.Lock()
	due := !now.Before(h.next[from])
	if due {
		maps.DeleteFunc(h.next, func(_ node.ID, at time.Time) bool { return !now.Before(at) })
		h.next[from] = now.Add(handedLogEvery)
	}
	h.mu.Unlock()
	if due {
		h.log.Warn("request handed over by a node refused", "node", from)
	}
}
