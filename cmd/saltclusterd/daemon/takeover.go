package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/router"
)

// This file says which part of the daemon is opened and closed at which step of a takeover.

const (
	// arrivingFor is how long a process that has taken over may take to find the cluster without a warning.
	arrivingFor = 10 * time.Second
	// routesFor is how long the old process's view of who is alive holds at most.
	routesFor = 5 * time.Second
	peersPoll = 50 * time.Millisecond
)

func (d *Daemon) newUpgrader() *takeover.Upgrader {
	return takeover.NewUpgrader(takeover.Config{
		Node: d.id, Version: d.version, Operations: d.op, Sockets: d.sockets, Service: d.takeoverService,
		Listens: func() []takeover.Listening { return d.listens(true) },
		Doors: func() (doors []io.Closer) {
			for _, door := range d.doors {
				doors = append(doors, door)
			}
			return doors
		},
		Logger: d.log,
	})
}

// SetProcess must be called before Run.
func (d *Daemon) SetProcess(p takeover.Process) { d.upgrader.SetProcess(p) }

// Upgrade has another program serve in the place of this process.
func (d *Daemon) Upgrade(ctx context.Context, r adminapi.UpgradeRequest, p admin.Progress) (adminapi.Outcome, error) {
	return d.upgrader.Upgrade(ctx, r, p)
}

// HandedOver reports, after Run, whether another process serves in the place of this one.
func (d *Daemon) HandedOver() bool { return d.upgrader.HandedOver() }

// takeoverService returns the running membership as the old side of a takeover needs it, nil without one.
func (d *Daemon) takeoverService() *takeover.Service {
	m := d.current()
	if m == nil {
		return nil
	}
	svc := &takeover.Service{
		ClusterID: m.Record.ClusterID, UUID: m.Record.UUID,
		Fail: m.fail, Failed: func() bool { return len(m.failed) > 0 }, Serving: m.ready(),
	}
	if svc.Serving {
		svc.Parts, svc.Drain, svc.Settled = m.takeoverParts(), m.svc.drain, m.svc.settled.Load
		svc.Resign, svc.RetirePort, svc.Release = m.leadership.Resign, m.Port.Retire, m.releaseExclusive
	}
	return svc
}

// takeoverParts are the parts whose state goes from the old process to the new one.
func (m *member) takeoverParts() takeover.Parts {
	s := m.svc
	return takeover.Parts{
		Self: m.d.id, Publish: s.pub, Requests: s.reqs, Subscription: s.sub, Hub: s.hub, Intake: s.intake,
		Log: m.Consensus, Clock: s.clock, Jobs: s.jobs, Published: s.published,
		Routes: m.Routes, SetRoutes: m.setInheritedRoutes,
	}
}

// setInheritedRoutes sets the routes of the old process, until this one has found the other members.
func (m *member) setInheritedRoutes(nodes []router.Node, leader node.ID) {
	s := m.svc
	m.SetRoutes(&router.View{
		Self: m.d.id, Nodes: nodes, Jobs: s.jobs, Leader: leader, Events: s.eventRules, Relaying: s.relay.InFlight,
		Pusher: m.pusher(),
	})
}

// releaseExclusive closes what only one process can have open. Requests in flight continue.
func (m *member) releaseExclusive() error {
	s := m.svc
	s.handed.Store(true)
	m.cancel()
	m.wg.Wait()
	var g errgroup.Group
	g.Go(func() error { s.stopClock(); return nil })
	for _, p := range s.parts() {
		if p.phase == exclusive {
			g.Go(func() error { return s.closePart(p) })
		}
	}
	g.Go(m.Gossip.Hand)
	g.Go(s.hub.Close)
	g.Go(m.Consensus.Close)
	return g.Wait()
}

// successor is a process that takes over from another one.
type successor struct {
	d    *Daemon
	m    *member // nil until it is built
	side *takeover.NewSide
}

// takeOver is Run for a process that takes over from another one.
func (d *Daemon) takeOver(ctx context.Context, ready func()) (err error) {
	s := &successor{d: d}
	if s.side, err = d.upgrader.NewSide(s.config()); err != nil {
		return err
	}
	defer s.side.Close()
	var open []closer
	defer func() {
		for i := len(open) - 1; i >= 0; i-- {
			err = errors.Join(err, open[i].Close())
		}
	}()
	if again, err := d.afterEnding(s.serve(ctx, &open, ready)); !again {
		return err
	}
	return d.loop(ctx)
}

func (s *successor) config() takeover.NewSideConfig {
	d := s.d
	return takeover.NewSideConfig{
		Version: d.version, Sockets: d.sockets, ReadHost: d.readHost,
		Addresses: func() []string {
			pub, req := d.cfg.EdgeAddresses(localAddrs())
			return append(pub, req...)
		},
		BindDoors: d.bindDoors, Build: s.build,
		OpenShared: func(ctx context.Context) error { return s.m.svc.openShared(ctx) },
		CloseDoors: d.closeDoors, Logger: d.log,
	}
}

// build builds the membership of the old process and binds its ports.
func (s *successor) build(ctx context.Context, uuid string) (parts takeover.Parts, err error) {
	d := s.d
	seed, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err == nil && (seed == nil || seed.UUID != uuid) {
		err = fmt.Errorf("%s belongs to another cluster than the running process", d.cfg.Paths.StateDir)
	}
	if err := d.checkMembership(seed, err); err != nil {
		return parts, err
	}
	d.reg.renew()
	if s.m, err = d.newMember(seed); err != nil {
		return parts, err
	}
	if err := s.m.Port.Bind(ctx); err != nil {
		return parts, err
	}
	if err := s.m.Gossip.Bind(ctx); err != nil {
		return parts, err
	}
	return s.m.takeoverParts(), nil
}

// serve takes over, serves, and closes the membership.
func (s *successor) serve(ctx context.Context, open *[]closer, ready func()) (err error) {
	d := s.d
	defer func() {
		if s.m != nil {
			err = errors.Join(err, s.m.Close())
			d.setMember(nil)
		}
	}()
	percent := debug.SetGCPercent(-1) // until the connections are served
	if err = s.side.TakeOver(ctx); err == nil {
		err = s.m.serveInherited(ctx)
	}
	debug.SetGCPercent(percent)
	if err != nil {
		return err
	}
	s.side.Follow(ready)
	d.setMember(s.m)
	d.upgrader.SetArrived()
	lock, err := s.side.Lock()
	if err != nil {
		return err
	}
	*open = append([]closer{&dirLock{lock}}, *open...)
	if err := d.openDoors(ctx, open); err != nil {
		return err
	}
	return d.upgrader.Finish(ctx, s.m.serveSettling(ctx, s.side))
}

// openShared opens what two processes can have open.
func (s *service) openShared(ctx context.Context) error {
	s.alone.Begin() // until consensus is open
	if err := s.beginEpoch(s.m.Consensus.View()); err != nil {
		return err
	}
	return s.openPhase(ctx, shared)
}

// serveInherited serves minions with the connections of the old process.
func (m *member) serveInherited(ctx context.Context) error {
	s := m.svc
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.took = time.Now()
	m.svc.late.caught.Store(true) // the old process had
	m.minions.ReadProtocols()
	for _, of := range []phase{outgoing, incoming} {
		if err := s.openPhase(ctx, of); err != nil {
			return err
		}
	}
	s.serving.Store(true)
	s.opened.Store(true)
	m.log.Info("taken over", "node", m.d.id, "count", s.pub.Conns()+s.reqs.Stats().Conns)
	m.rpc.handle(m)
	if err := m.OpenPort(ctx); err != nil {
		return err
	}
	startDuties(s.ctx, &s.wg, s.duties(), edgesTaken, true)
	return nil
}

// serveSettling opens what the old process closes, and returns when ctx ends or a part has failed.
func (m *member) serveSettling(ctx context.Context, side *takeover.NewSide) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		defer cancel()
		ended <- m.watch(ctx)
	}()
	if err := m.openExclusive(ctx, side); err != nil && ctx.Err() == nil {
		return err
	}
	return <-ended
}

// openExclusive opens what only one process can have open.
func (m *member) openExclusive(ctx context.Context, side *takeover.NewSide) error {
	if err := side.AwaitFree(ctx); err != nil {
		return err
	}
	if err := m.OpenConsensus(ctx); err != nil {
		return err
	}
	if err := m.d.sockets.DiscardInherited(); err != nil {
		m.log.Warn("a socket on which no process answers any more is left over: remove it", "err", err)
	}
	startDuties(m.ctx, &m.wg, m.duties(), consensusOpen, true)
	if err := m.svc.openExclusive(ctx); err != nil {
		return err
	}
	m.wg.Go(func() {
		select {
		case <-side.Ended(): // until then answers of the old process may come
			m.svc.settled.Store(true)
		case <-m.ctx.Done():
		}
	})
	return nil
}

// openExclusive opens what is on disk.
func (s *service) openExclusive(ctx context.Context) error {
	s.keepClock()
	s.late.releaseAll() // the old process had caught up
	if err := s.openPhase(ctx, exclusive); err != nil {
		return err
	}
	s.late.open.Store(true)
	startDuties(s.ctx, &s.wg, s.duties(), disksFree, true)
	s.migration.Resume()
	return nil
}

// awaitPeers waits until gossip has found the members that the old process considered alive.
func (m *member) awaitPeers(ctx context.Context) {
	known := m.Routes().Nodes
	for end := time.Now().Add(routesFor); time.Now().Before(end); {
		missing := 0
		for _, n := range known {
			if g, ok := m.Gossip.Member(n.ID); n.Alive && n.ID != m.d.id && (!ok || !g.Meta.Ready) {
				missing++
			}
		}
		if missing == 0 || !backoff.Sleep(ctx, peersPoll) {
			return
		}
	}
}

// arriving reports whether this process has taken over a moment ago and has not found the cluster yet.
func (m *member) arriving() bool {
	return !m.took.IsZero() && time.Since(m.took) < arrivingFor && m.svc.alone.Serving()
}
