package statuspage

import (
	"context"
	"sync"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// Source answers what the admin socket answers. What a node cannot say (a witness has no minions) is an error.
type Source interface {
	Status(ctx context.Context) (adminapi.Status, error)
	RingInfo(ctx context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error)
	RootsStatus(ctx context.Context) (adminapi.RootsStatus, error)
	ListJobs(ctx context.Context, n int) (adminapi.JobList, error)
	Presence(ctx context.Context) (adminapi.Presence, error)
	Protocols(ctx context.Context) (adminapi.Protocols, error)
}

// gathering is what the Source has answered; nil is what it has not.
type gathering struct {
	At        time.Time
	Status    *adminapi.Status
	Ring      *adminapi.RingInfo
	Roots     *adminapi.RootsStatus
	Jobs      *adminapi.JobList
	Presence  *adminapi.Presence
	Protocols *adminapi.Protocols
}

const (
	// fresh is for how long an answer is good enough; lasting for those that cost the whole cluster something.
	fresh   = 2 * time.Second
	lasting = 10 * time.Second
	// within is what a page may take to be made. Nodes that are down are given up before.
	within = 8 * time.Second
	// jobsShown is how many jobs are listed.
	jobsShown = 15
)

// cache keeps the latest answers, so that many who look ask once.
type cache struct {
	now  func() time.Time
	mu   sync.Mutex // held while asking: who comes meanwhile gets the same
	last gathering
	slow time.Time // when the lasting part was asked for
}

// getFresh returns answers that are fresh enough. A caller that asks the Source does so for all callers, and continues
// when its browser has gone.
func (c *cache) getFresh(ctx context.Context, s Source) gathering {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if !c.last.At.IsZero() && now.Sub(c.last.At) < fresh {
		return c.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within*3/4)
	defer cancel()
	next := c.last
	all := c.slow.IsZero() || now.Sub(c.slow) >= lasting
	jobs := all || c.last.hasOpenJobs()
	var wg sync.WaitGroup
	askSource(&wg, &next.Status, func() (adminapi.Status, error) { return s.Status(ctx) })
	askSource(&wg, &next.Ring, func() (adminapi.RingInfo, error) { return s.RingInfo(ctx, adminapi.RingQuery{}) })
	if all {
		askSource(&wg, &next.Roots, func() (adminapi.RootsStatus, error) { return s.RootsStatus(ctx) })
		askSource(&wg, &next.Presence, func() (adminapi.Presence, error) { return s.Presence(ctx) })
		askSource(&wg, &next.Protocols, func() (adminapi.Protocols, error) { return s.Protocols(ctx) })
	}
	if jobs {
		askSource(&wg, &next.Jobs, func() (adminapi.JobList, error) { return s.ListJobs(ctx, jobsShown) })
	}
	wg.Wait()
	next.At = now
	if all {
		c.slow = now
	}
	c.last = next
	return next
}

// hasOpenJobs says whether a job that is shown has returns to come.
func (g gathering) hasOpenJobs() bool {
	if g.Jobs == nil {
		return false
	}
	for _, j := range g.Jobs.Jobs {
		if j.Returned < j.Minions {
			return true
		}
	}
	return false
}

func askSource[T any](wg *sync.WaitGroup, to **T, question func() (T, error)) {
	wg.Go(func() {
		*to = nil
		if v, err := question(); err == nil {
			*to = &v
		}
	})
}
