package daemon

import (
	"context"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/fsync/jobs"
)

// Letting a node's minions go, in an order in which nothing is lost: load balancers are told (health), and the other nodes
// (the ring gives its share away, the leadership moves); when they had time to notice, nobody new is let in, subscribers are
// handed over in steps and request connections closed between two requests. The node goes on working for its peers: its
// master's publications are spread, returns for it arrive, relayed requests are answered.
//
// A drain that was asked for is a fact in consensus, so that it outlives the daemon; on stop it is this process's own.

// drainPhase is how far a drain is.
type drainPhase string

const (
	phaseServing   drainPhase = "serving"
	phaseAnnounced drainPhase = "announced" // red for load balancers, everybody is still served
	phaseHandOver  drainPhase = "handing over"
	phaseJobs      drainPhase = "waiting for jobs"
	phaseDrained   drainPhase = "drained"
	phaseReturning drainPhase = "taking minions again"
)

// drainWishes are what an operator may want of the next drain.
type drainWishes struct {
	Over     time.Duration `json:"over,omitempty"` // zero: the option drain_time
	WaitJobs bool          `json:"wait_jobs,omitempty"`
}

// drainReport is what a node tells of its drain.
type drainReport struct {
	Phase       drainPhase `json:"phase"`
	Subscribers int        `json:"subscribers"`
	Connections int        `json:"connections"` // to the request port
	InFlight    int        `json:"in_flight"`
	Jobs        int        `json:"jobs"` // published here and waited for
	Leader      bool       `json:"leader,omitempty"`
	Kept        uint64     `json:"kept,omitempty"`     // returns kept for nodes that cannot be reached
	Deferred    uint64     `json:"deferred,omitempty"` // returns that wait for this node's master
	Unstored    uint64     `json:"unstored,omitempty"` // returns whose files and events are not made, and files that no other node has
	Aside       int        `json:"aside,omitempty"`    // returns that it does not answer, which may be so for ever
}

// drainer carries out drains of this node, one at a time.
type drainer struct {
	s *service

	mu     sync.Mutex
	wishes drainWishes
	phase  drainPhase
	red    time.Time // when load balancers were told; zero: they are not
	stop   func()    // ends the drain under way and waits for it
	over   bool      // the daemon stops: what consensus says does not matter any more

	wished chan struct{} // holds one: there are wishes
}

func newDrainer(s *service) *drainer {
	return &drainer{s: s, phase: phaseServing, wished: make(chan struct{}, 1)}
}

// wish notes what the operator wants of the drain that comes, or of the one under way.
func (d *drainer) wish(w drainWishes) {
	d.mu.Lock()
	d.wishes = w
	d.mu.Unlock()
	select {
	case d.wished <- struct{}{}:
	default:
	}
}

// anew says whether the drain under way is to begin anew, since somebody wants it to take another time. Who names none, and wants to
// see how it ends, leaves it as it is.
func (d *drainer) anew() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stop == nil || d.over {
		return false
	}
	if d.wishes.Over == 0 {
		d.wishes = drainWishes{}
	}
	return d.wishes.Over > 0
}

// draining says whether minions are being, or have been, let go.
func (d *drainer) draining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.red.IsZero()
}

// underWay says whether a drain has not come to its end, or is being taken back.
func (d *drainer) underWay() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.red.IsZero() && d.phase != phaseDrained
}

func (d *drainer) report() drainReport {
	d.mu.Lock()
	phase := d.phase
	d.mu.Unlock()
	pub, req := d.s.pub.Stats(), d.s.reqs.Stats()
	return drainReport{
		Phase: phase, Subscribers: pub.Subscribers, Connections: req.Conns, InFlight: req.InFlight,
		Jobs: d.s.published.running(), Leader: d.s.m.cons.Leader() == d.s.m.d.id, Kept: d.s.returns.Kept(),
		Deferred: d.s.returns.Deferred(), Unstored: d.s.returns.Unstored() + uncopied(d.s.cache.Status()), Aside: d.s.returns.Aside(),
	}
}

// uncopied counts what members that can be reached have still to get of this node's job cache.
func uncopied(st jobs.Status) (n uint64) {
	for _, p := range st.Peers {
		if !p.Off && p.Err == "" {
			n += uint64(p.Waiting + p.Dirty)
		}
	}
	return n
}

func (d *drainer) enter(p drainPhase) {
	d.mu.Lock()
	changed := d.phase != p
	d.phase = p
	d.mu.Unlock()
	if changed {
		d.s.m.log.Info("drain", "node", d.s.m.d.id, "state", string(p))
	}
}

// wanted says whether the cluster wants this node drained.
func (d *drainer) wanted() bool {
	self, ok := d.s.m.cons.View().Member(d.s.m.d.id)
	return ok && self.Draining
}

// awaitWelcome returns when minions may come: a node that was drained before its daemon was restarted stays so.
func (d *drainer) awaitWelcome(ctx context.Context) error {
	changed := d.s.m.cons.Watch(ctx)
	look := time.NewTicker(shedEvery)
	defer look.Stop()
	for d.wanted() {
		d.announce()
		d.enter(phaseDrained)
		d.s.step.Store("this node is drained (saltclusterctl undrain " + string(d.s.m.d.id) + ")")
		d.s.m.leadership.Resign(ctx)
		select {
		case <-look.C:
		case _, ok := <-changed:
			if !ok {
				return ctx.Err()
			}
		}
	}
	d.welcome()
	return nil
}

// follow drains and undrains as the cluster wants, until ctx ends.
func (d *drainer) follow(ctx context.Context) {
	changed := d.s.m.cons.Watch(ctx)
	for {
		switch want, is := d.wanted(), d.draining(); {
		case d.stopping():
		case want && !is:
			d.begin(ctx)
		case !want && is:
			d.undo(ctx)
		case want && d.anew():
			d.halt()
			d.begin(ctx)
		}
		select {
		case _, ok := <-changed:
			if !ok {
				d.halt()
				return
			}
		case <-d.wished:
		}
	}
}

func (d *drainer) stopping() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

// begin starts a drain in the background.
func (d *drainer) begin(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	d.mu.Lock()
	if d.over {
		d.mu.Unlock()
		cancel()
		return
	}
	d.stop = func() { cancel(); <-done }
	w := d.wishes
	d.wishes = drainWishes{}
	d.mu.Unlock()
	d.announce()
	go func() {
		defer close(done)
		d.run(ctx, w)
	}()
}

// halt ends a drain under way where it is.
func (d *drainer) halt() {
	d.mu.Lock()
	stop := d.stop
	d.stop = nil
	d.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// undo takes minions in again.
func (d *drainer) undo(ctx context.Context) {
	d.halt()
	d.enter(phaseReturning)
	for _, resume := range []func(context.Context) error{d.s.pub.Resume, d.s.reqs.Resume} {
		if err := retryListen(ctx, d.s.m.log, resume, nil); err != nil {
			if ctx.Err() == nil && !d.stopping() {
				d.s.m.fail(err)
			}
			return
		}
	}
	d.welcome()
}

// announce tells load balancers and the other nodes.
func (d *drainer) announce() {
	d.mu.Lock()
	news := d.red.IsZero()
	if news {
		d.red = time.Now()
	}
	d.mu.Unlock()
	if news {
		d.tell(true)
		d.enter(phaseAnnounced)
	}
}

// welcome takes announce back.
func (d *drainer) welcome() {
	d.mu.Lock()
	over := d.over
	if !over {
		d.red = time.Time{}
	}
	d.mu.Unlock()
	if over {
		return
	}
	d.enter(phaseServing)
	d.tell(false)
}

func (d *drainer) tell(draining bool) {
	d.s.m.d.checks.SetDraining(draining)
	d.s.m.gossip.UpdateMeta()
	d.s.m.updateRoutes()
}

// shedEvery is how often a draining node looks whether it was made leader again.
const shedEvery = 2 * time.Second

// run is one drain, to its end or that of ctx.
func (d *drainer) run(ctx context.Context, w drainWishes) {
	shed := make(chan struct{})
	go func() { // ends with ctx
		defer close(shed)
		for d.s.m.leadership.Resign(ctx); backoff.Sleep(ctx, shedEvery); {
			d.s.m.leadership.Resign(ctx)
		}
	}()
	defer func() { <-shed }()
	over := w.Over
	if over == 0 {
		over = d.s.m.d.cfg.Edge.DrainTime
	}
	if d.letGo(ctx, d.s.m.d.cfg.Edge.DrainAnnounce, over); ctx.Err() != nil {
		return
	}
	if w.WaitJobs {
		d.enter(phaseJobs)
		for d.s.published.running() > 0 {
			if !backoff.Sleep(ctx, jobsEvery) {
				return
			}
		}
	}
	d.enter(phaseDrained)
	<-ctx.Done()
}

// letGo waits until load balancers have noticed, and lets everybody go.
func (d *drainer) letGo(ctx context.Context, announce, over time.Duration) {
	d.mu.Lock()
	notice := time.Until(d.red.Add(announce))
	d.mu.Unlock()
	if d.occupied() && notice > 0 && !backoff.Sleep(ctx, notice) {
		return
	}
	d.enter(phaseHandOver)
	var both sync.WaitGroup
	both.Go(func() { d.s.pub.Drain(ctx, over) })
	both.Go(func() { d.s.reqs.Drain(ctx, over) })
	both.Wait()
}

func (d *drainer) occupied() bool { return d.s.pub.Stats().Conns > 0 || d.s.reqs.Stats().Conns > 0 }

// requestGrace is how much longer than drain_time a stop waits for requests under way.
const requestGrace = 5 * time.Second

// leave is the drain of a daemon that stops. It takes as long as load balancers, subscribers and requests under way need,
// and no longer than ctx; where no other node serves, it waits for requests under way only.
func (d *drainer) leave(ctx context.Context) {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.halt()
	d.announce()
	d.s.m.leadership.Resign(ctx)
	cfg := d.s.m.d.cfg.Edge
	ctx, cancel := context.WithTimeout(ctx, cfg.DrainAnnounce+cfg.DrainTime+requestGrace)
	defer cancel()
	if !d.s.m.othersServe(d.s.m.d.id) { // nobody takes them: the sooner they are let go, the sooner somebody is here again
		d.letGo(ctx, 0, 0)
		return
	}
	d.letGo(ctx, cfg.DrainAnnounce, cfg.DrainTime)
}
