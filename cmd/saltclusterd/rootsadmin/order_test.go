package rootsadmin

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"saltclusterd/fsync/roots"
	"saltclusterd/gossip/node"
	"saltclusterd/signal"
)

// listing is the directories of file_roots, environment base.
func listing(dirs ...string) roots.Paths {
	out := roots.Paths{}
	for i, d := range dirs {
		if d != "" {
			out[roots.SlotName{Kind: "file", Env: "base", Pos: i}] = d
		}
	}
	return out
}

// Nothing is decided before all members that are alive have answered.
func TestOrder_AwaitsAnswers(t *testing.T) {
	var answers atomic.Bool
	asked := make(chan struct{}, 1)
	cfg := Config{Others: func() []node.ID { return []node.ID{"m2"} }, Alive: func(node.ID) bool { return true }}
	o := newOrder(listing("/b", "/a"), cfg,
		func(context.Context, node.ID) (roots.Paths, error) {
			defer func() {
				signal.Send(asked)
			}()
			if !answers.Load() {
				return nil, errors.New("starting")
			}
			return listing("/a", "/b"), nil
		})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.runOrder(ctx); close(done) }()
	<-asked
	ended, end := context.WithCancel(ctx)
	end()
	if bad := o.awaitMisplaced(ended); bad != nil {
		t.Errorf("decided early: %v", bad)
	}
	answers.Store(true)
	if bad := o.awaitMisplaced(ctx); len(bad) != 2 {
		t.Errorf("%v", bad)
	}
	cancel()
	<-done
}
