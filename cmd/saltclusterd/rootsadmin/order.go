package rootsadmin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

const (
	// orderEvery is how often the other masters are asked in which order they list their directories.
	orderEvery = 5 * time.Second
	// orderFirst is how long the roots wait for the word of members that are not seen alive.
	orderFirst = 3 * time.Second
	// orderMost is how long they wait for the word of those that are.
	orderMost = 15 * time.Second
)

// order keeps what the other masters say about the order of their directories.
type order struct {
	self   roots.Paths
	others func() []node.ID
	alive  func(node.ID) bool
	ask    func(context.Context, node.ID) (roots.Paths, error)

	first chan struct{} // closed when it is known enough

	mu    sync.Mutex
	said  map[node.ID]roots.Paths
	bad   map[roots.SlotName]string
	notes []string
}

func (r *Roots) newOrder() *order {
	return &order{
		self: roots.PathsOf(r.slots, r.cfg.Master.Text("root_dir")), others: r.cfg.Others, alive: r.cfg.Alive,
		first: make(chan struct{}), said: map[node.ID]roots.Paths{},
		ask: func(ctx context.Context, id node.ID) (roots.Paths, error) {
			report, err := r.reportOf(ctx, id)
			return report.Paths, err
		},
	}
}

// run asks until ctx ends.
func (o *order) run(ctx context.Context) {
	began, known := time.Now(), false
	for {
		missing := o.askAll(ctx)
		if !known {
			waiting := slices.ContainsFunc(missing, o.alive) || len(missing) > 0 && time.Since(began) < orderFirst
			if known = !waiting || time.Since(began) > orderMost; known {
				close(o.first)
			}
		}
		pause := orderEvery
		if !known {
			pause = orderFirst / 20
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// askAll asks the other masters and compares. It returns those that have never answered.
func (o *order) askAll(ctx context.Context) (missing []node.ID) {
	var wg sync.WaitGroup
	others := o.others()
	for _, id := range others {
		if !o.alive(id) && o.heard(id) {
			continue
		}
		wg.Go(func() {
			paths, err := o.ask(ctx, id)
			if err != nil {
				return // what it said before still holds
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			o.said[id] = paths
		})
	}
	wg.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.said, func(id node.ID, _ roots.Paths) bool { return !slices.Contains(others, id) })
	told := map[node.ID]roots.Paths{}
	for _, id := range others {
		paths, ok := o.said[id]
		if !ok {
			missing = append(missing, id)
		} else if len(paths) > 0 { // else its roots are not replicated
			told[id] = paths
		}
	}
	o.bad, o.notes = o.self.Compare(told)
	return missing
}

func (o *order) heard(id node.ID) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.said[id] != nil
}

// Bad is roots.Config.Order.
func (o *order) Bad(ctx context.Context) map[roots.SlotName]string {
	select {
	case <-o.first:
	case <-ctx.Done():
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bad
}

func (o *order) Notes() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notes
}
