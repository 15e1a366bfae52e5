package rootsadmin

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
)

const (
	// orderInterval is how often the other masters are asked in which order they list their directories.
	orderInterval = 5 * time.Second
	// orderWaitAbsent is how long the engine waits for answers of members that are not seen alive.
	orderWaitAbsent = 3 * time.Second
	// orderWaitAlive is how long it waits for answers of the others.
	orderWaitAlive = 15 * time.Second
)

// order compares the directories of this node with those that the other masters list.
type order struct {
	self   roots.Paths
	others func() []node.ID
	alive  func(node.ID) bool
	ask    func(context.Context, node.ID) (roots.Paths, error)

	compared chan struct{} // closed when the answers suffice

	mu        sync.Mutex
	answers   map[node.ID]roots.Paths
	misplaced map[roots.SlotName]string
	notes     []string
}

func newOrder(self roots.Paths, cfg Config, ask func(context.Context, node.ID) (roots.Paths, error)) *order {
	return &order{
		self: self, others: cfg.Others, alive: cfg.Alive, ask: ask,
		compared: make(chan struct{}), answers: map[node.ID]roots.Paths{},
	}
}

// runOrder asks the other masters until ctx ends.
func (o *order) runOrder(ctx context.Context) {
	began, known := time.Now(), false
	for {
		missing := o.askOthers(ctx)
		if !known {
			waiting := slices.ContainsFunc(missing, o.alive) || len(missing) > 0 && time.Since(began) < orderWaitAbsent
			if known = !waiting || time.Since(began) > orderWaitAlive; known {
				close(o.compared)
			}
		}
		pause := orderInterval
		if !known {
			pause = orderWaitAbsent / 20
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// askOthers asks the other masters and compares. It returns those that have never answered.
func (o *order) askOthers(ctx context.Context) (missing []node.ID) {
	others := o.others()
	answered := o.answered()
	asked := slices.DeleteFunc(slices.Clone(others), func(id node.ID) bool { return !o.alive(id) && answered[id] })
	answers := peerrpc.AskAll(ctx, asked, o.ask)
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.Copy(o.answers, answers.Of) // the former answer of a member that fails remains
	maps.DeleteFunc(o.answers, func(id node.ID, _ roots.Paths) bool { return !slices.Contains(others, id) })
	lists := map[node.ID]roots.Paths{}
	for _, id := range others {
		paths, ok := o.answers[id]
		if !ok {
			missing = append(missing, id)
		} else if len(paths) > 0 { // else its roots are not replicated
			lists[id] = paths
		}
	}
	o.misplaced, o.notes = o.self.Compare(lists)
	return missing
}

// answered returns the members that have said what they list.
func (o *order) answered() map[node.ID]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[node.ID]bool{}
	for id, paths := range o.answers {
		out[id] = paths != nil
	}
	return out
}

// awaitMisplaced waits for the first comparison, and returns the slots that the majority lists at other places
// (roots.Config.Order).
func (o *order) awaitMisplaced(ctx context.Context) map[roots.SlotName]string {
	select {
	case <-o.compared:
	case <-ctx.Done():
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.misplaced
}

// notesForOperators describes how the lists differ.
func (o *order) notesForOperators() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notes
}
