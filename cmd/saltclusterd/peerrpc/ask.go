package peerrpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"saltclusterd/gossip/node"
)

// Timeout is how long a member is waited for that is asked something it knows.
const Timeout = 3 * time.Second

// Answers are what members answered to one question.
type Answers[A any] struct {
	Of     map[node.ID]A
	Failed map[node.ID]error
}

// Missing lists the members that did not answer, sorted.
func (a Answers[A]) Missing() []string {
	var out []string
	for id := range a.Failed {
		out = append(out, string(id))
	}
	slices.Sort(out)
	return out
}

// AskAll asks members at the same time and returns when all have answered or failed; ask has to end with ctx.
func AskAll[A any](ctx context.Context, ids []node.ID, ask func(context.Context, node.ID) (A, error)) Answers[A] {
	out := Answers[A]{Of: make(map[node.ID]A, len(ids)), Failed: map[node.ID]error{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			answer, err := ask(ctx, id)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				out.Failed[id] = err
				return
			}
			out.Of[id] = answer
		})
	}
	wg.Wait()
	return out
}

// Reason is for operators why a member could not be asked: what the network said and of which address, without the
// path that was asked for and the words of Go.
func Reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		cause := op.Err
		if sys, ok := errors.AsType[*os.SyscallError](cause); ok {
			cause = sys.Err
		}
		if op.Addr == nil || cause == nil {
			return op.Error()
		}
		return fmt.Sprintf("%v (%v)", cause, op.Addr)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "it did not answer in time"
	}
	if call, ok := errors.AsType[*url.Error](err); ok {
		return call.Err.Error()
	}
	return err.Error()
}
