package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/integration/history"
)

// publish orders numbered jobs from the nodes in turn. A node whose master does not answer misses its turn.
func (w *world) publish(ctx context.Context) {
	for turn := 0; backoff.Sleep(ctx, w.cfg.Every); turn++ {
		w.mu.Lock()
		w.number++
		n := w.number
		w.mu.Unlock()
		_ = w.clients[turn%len(w.clients)].publish(n) // busy: the number is not used
	}
}

// last is the highest number that may have been published.
func (w *world) last() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.number
}

// events lets a played minion fire an event now and then. Each tag is used once only.
func (w *world) events(ctx context.Context) {
	r := rand.New(rand.NewPCG(w.cfg.Seed, 0xe7e7))
	for i := 1; backoff.Sleep(ctx, 3*w.cfg.Every); i++ {
		p := w.players[r.IntN(len(w.players))]
		s := history.Sent{Minion: p.ID, Tag: fmt.Sprintf("chaos/%s/%d", p.ID, i), At: time.Now()}
		if err := p.Fire(ctx, p.addr, s.Tag); err == nil {
			s.Acked = time.Now()
		}
		w.rec.Sent(s)
	}
}
