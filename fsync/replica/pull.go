package replica

import (
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Ask sends a question to another node's Answer and returns what that says, of at most the store's MaxBody bytes.
type Ask func(ctx context.Context, question []byte) (answer []byte, err error)

// Puller is how a store catches up.
type Puller[K comparable] struct {
	// Offered lists what a peer has and this node lacks, and how much it has got already.
	Offered func(ctx context.Context, ask Ask) (keys []K, got int, err error)
	// Fetch gets the first n of a page, and returns 0 when no more is to be fetched.
	Fetch   func(ctx context.Context, ask Ask, page []K) (n int, err error)
	Page    int // keys in a page
	AtATime int // pages that are fetched at a time
}

// Pull brings this node up to what another one has, and tells how far it is. Items that are lacking when it is cut off
// are still lacking when it is called again.
func (r *Replica[K, S, M]) Pull(ctx context.Context, ask Ask, tell func(done, total int)) error {
	if r.spec.Off != "" {
		return nil
	}
	select {
	case <-r.scanned:
	case <-ctx.Done():
		return ctx.Err()
	}
	keys, done, err := r.spec.Pull.Offered(ctx, ask)
	if err != nil {
		return err
	}
	var mu sync.Mutex // guards done, and keeps reports in order
	total := done + len(keys)
	tell(done, total)
	var g errgroup.Group
	g.SetLimit(r.spec.Pull.AtATime)
	for page := range slices.Chunk(keys, r.spec.Pull.Page) {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			for len(page) > 0 {
				n, err := r.spec.Pull.Fetch(ctx, ask, page)
				if n == 0 || err != nil {
					return err
				}
				page = page[n:]
				mu.Lock()
				done += n
				tell(done, total)
				mu.Unlock()
			}
			return nil
		})
	}
	return errors.Join(g.Wait(), ctx.Err())
}
