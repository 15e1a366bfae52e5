package sidecar

import (
	"context"
	"sync"
	"time"

	"saltclusterd/sidecar/router"
)

// While a new revision of the file and pillar trees takes the place of the old one, requests that read them wait, so
// that no minion sees half of it. Both ways are bounded: a master that is slow to answer does not stop the switch, and
// a switch that takes long does not stop the minions.
const (
	// gateTimeout is how long a switch waits for requests under way, a pillar that is being rendered for example.
	gateTimeout = 3 * time.Second
	// gateLimit is the longest that requests wait.
	gateLimit = 8 * time.Second
)

// fileGate is what requests for files and pillars pass.
type fileGate struct {
	turn chan struct{} // whose token a holder has

	mu      sync.Mutex
	inside  int           // requests at the master
	idle    chan struct{} // closed when inside becomes zero; nil: no holder waits for that
	held    bool
	waiting []func()
	since   time.Time // of the hold
}

func newFileGate() *fileGate { return &fileGate{turn: make(chan struct{}, 1)} }

// runWhenOpen calls f when the gate is open, usually at once. leave must be called after each f.
func (g *fileGate) runWhenOpen(f func()) {
	g.mu.Lock()
	if g.held {
		g.waiting = append(g.waiting, f) // bounded by what the edges hold in flight
		g.mu.Unlock()
		return
	}
	g.inside++
	g.mu.Unlock()
	f()
}

func (g *fileGate) leaveGate() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// closeGate lets no more requests pass, and returns a channel that is closed when none is inside.
func (g *fileGate) closeGate() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.held, g.since = true, time.Now()
	idle := make(chan struct{})
	if g.inside == 0 {
		close(idle)
		return idle
	}
	g.idle = idle
	return idle
}

// openGate lets those pass who wait, and says for how long the gate was closed.
func (g *fileGate) openGate() (waiting []func(), held time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	waiting, g.waiting = g.waiting, nil
	g.inside += len(waiting)
	g.held, g.idle = false, nil
	return waiting, time.Since(g.since)
}

func (g *fileGate) countWaiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// HoldFiles makes requests that read files or pillars wait, and returns when none is under way at the local master, or
// gateTimeout has passed. They continue when release is called, or after gateLimit. Only one can hold at a time;
// another waits, until ctx ends.
func (p *Proxy) HoldFiles(ctx context.Context) (release func(), err error) {
	select {
	case p.files.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	var once sync.Once
	open := func() {
		once.Do(func() {
			waiting, held := p.files.openGate()
			p.metrics.held.Observe(held.Seconds())
			<-p.files.turn
			for _, f := range waiting {
				f()
			}
		})
	}
	idle := p.files.closeGate()
	late := time.AfterFunc(gateLimit, func() {
		p.cfg.Logger.Warn("requests for files and pillars continue during a change of the roots, because they waited too long", "dur",
			gateLimit)
		open()
	})
	release = func() {
		late.Stop()
		open()
	}
	timeout := time.NewTimer(gateTimeout)
	defer timeout.Stop()
	select {
	case <-idle:
	case <-timeout.C:
		p.cfg.Logger.Info("the roots change although requests for files or pillars are still in progress", "dur",
			gateTimeout)
	case <-ctx.Done():
		release()
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
	}
	return release, nil
}

// passGate calls f when a call may read the roots.
func (p *Proxy) passGate(c *call, f func()) {
	if !router.ReadsRoots(c.peek.Cmd) {
		f()
		return
	}
	p.files.runWhenOpen(func() {
		var once sync.Once
		c.leave = func() { once.Do(p.files.leaveGate) }
		if c.to.Gone() {
			c.leaveGate()
			c.to.Drop()
			return
		}
		if p.isKeyCurrent(c) {
			f()
		}
	})
}
