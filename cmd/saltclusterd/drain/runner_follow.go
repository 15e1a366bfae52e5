package drain

import (
	"context"
	"sync"
	"time"

	"saltclusterd/backoff"
)

const (
	// resignEvery is how often a draining node checks whether it was made leader again.
	resignEvery = 2 * time.Second
	// stopGrace is how much longer than drain_time a stop waits: for requests in flight, and for minions which, in the
	// last moment of drain_time, got a publication that they sign in for. These need 5 s (edge.PubConfig.SignInTime).
	stopGrace = 8 * time.Second
)

// AwaitUndrained returns when minions may connect: a node that was drained before a restart stays drained. It calls
// waiting each time it finds the node drained.
func (r *Runner) AwaitUndrained(ctx context.Context, waiting func()) error {
	changed := r.cfg.Log.Watch(ctx)
	again := time.NewTimer(backoff.Align(resignEvery))
	defer again.Stop()
	for r.Wanted() {
		r.announceDrain()
		r.setPhase(Drained)
		waiting()
		r.cfg.Resign(ctx)
		select {
		case <-again.C:
			again.Reset(backoff.Align(resignEvery))
		case _, ok := <-changed:
			if !ok {
				return ctx.Err()
			}
		}
	}
	r.endAnnouncement()
	return nil
}

// Follow drains and undrains as the cluster wants, until ctx ends.
func (r *Runner) Follow(ctx context.Context) {
	changed := r.cfg.Log.Watch(ctx)
	for {
		switch wanted, draining := r.Wanted(), r.Draining(); {
		case r.isStopping():
		case wanted && !draining:
			r.startDrain(ctx)
		case !wanted && draining:
			r.takeBack(ctx)
		case wanted && r.mustRestart():
			r.stopDrain()
			r.startDrain(ctx)
		}
		select {
		case _, ok := <-changed:
			if !ok {
				r.stopDrain()
				return
			}
		case <-r.optionsSet:
		}
	}
}

func (r *Runner) isStopping() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopping
}

// startDrain starts a drain in the background; stopDrain waits for it.
func (r *Runner) startDrain(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.mu.Lock()
	if r.stopping {
		r.mu.Unlock()
		cancel()
		return
	}
	r.stop = func() { cancel(); <-done }
	o := r.options
	r.options = Options{}
	r.mu.Unlock()
	r.announceDrain()
	go func() {
		defer close(done)
		r.drainMinions(ctx, o)
	}()
}

// stopDrain ends a drain in progress where it is.
func (r *Runner) stopDrain() {
	r.mu.Lock()
	stop := r.stop
	r.stop = nil
	r.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// takeBack lets minions in again.
func (r *Runner) takeBack(ctx context.Context) {
	r.stopDrain()
	r.setPhase(Returning)
	if err := r.cfg.Reopen(ctx); err != nil {
		if ctx.Err() == nil && !r.isStopping() {
			r.cfg.Fail(err)
		}
		return
	}
	r.endAnnouncement()
}

// announceDrain informs load balancers and the other members that minions leave.
func (r *Runner) announceDrain() {
	r.mu.Lock()
	first := r.announced.IsZero()
	if first {
		r.announced = time.Now()
	}
	r.mu.Unlock()
	if first {
		r.cfg.Announce(true)
		r.setPhase(Announced)
	}
}

// endAnnouncement takes announce back, unless the process stops.
func (r *Runner) endAnnouncement() {
	r.mu.Lock()
	stopping := r.stopping
	if !stopping {
		r.announced = time.Time{}
	}
	r.mu.Unlock()
	if stopping {
		return
	}
	r.setPhase(Serving)
	r.cfg.Announce(false)
}

// drainMinions is one drain. It returns when ctx ends.
func (r *Runner) drainMinions(ctx context.Context, o Options) {
	var resigning sync.WaitGroup
	defer resigning.Wait()
	resigning.Go(func() { // ends with ctx
		for r.cfg.Resign(ctx); backoff.Sleep(ctx, resignEvery); {
			r.cfg.Resign(ctx)
		}
	})
	over := o.Over
	if over == 0 {
		over = r.cfg.DrainTime
	}
	if r.emptyPorts(ctx, r.cfg.AnnounceTime, over); ctx.Err() != nil {
		return
	}
	if o.WaitJobs {
		r.setPhase(WaitingForJobs)
		for r.cfg.Jobs.Running() > 0 {
			if !backoff.Sleep(ctx, jobsPoll) {
				return
			}
		}
	}
	r.setPhase(Drained)
	<-ctx.Done()
}

// emptyPorts waits until load balancers have noticed, and closes both ports and their connections.
func (r *Runner) emptyPorts(ctx context.Context, announce, over time.Duration) {
	r.mu.Lock()
	notice := time.Until(r.announced.Add(announce))
	r.mu.Unlock()
	if r.hasConnections() && notice > 0 && !backoff.Sleep(ctx, notice) {
		return
	}
	r.setPhase(HandingOver)
	var both sync.WaitGroup
	both.Go(func() { r.cfg.Publish.Drain(ctx, over) })
	both.Go(func() { r.cfg.Requests.Drain(ctx, over) })
	both.Wait()
}

func (r *Runner) hasConnections() bool {
	return r.cfg.Publish.Stats().Conns > 0 || r.cfg.Requests.Stats().Conns > 0
}

// DrainForStop is the drain of a process that stops. It takes as long as load balancers, subscribers and requests
// in flight need, and ends with ctx; if no other node serves minions, it waits for requests in flight only.
func (r *Runner) DrainForStop(ctx context.Context) {
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	r.stopDrain()
	r.announceDrain()
	r.cfg.Resign(ctx)
	ctx, cancel := context.WithTimeout(ctx, r.cfg.AnnounceTime+r.cfg.DrainTime+stopGrace)
	defer cancel()
	if !r.cfg.Routes().OthersServe(r.cfg.Self) { // the sooner they are disconnected, the sooner a node is here again
		r.emptyPorts(ctx, 0, 0)
		return
	}
	r.emptyPorts(ctx, r.cfg.AnnounceTime, r.cfg.DrainTime)
}
