package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/router"
)

// arrivingFor is how long a process that has taken over may take to find the cluster without a warning.
const arrivingFor = 10 * time.Second

func (d *Daemon) newUpgrader() *takeover.Upgrader {
	return takeover.NewUpgrader(takeover.Config{
		Node: d.id, Version: d.version, Operations: d.op, Sockets: d.sockets, Service: d.takeoverService,
		Listens: func() []takeover.Listening { return takeover.ListAddresses(d.cfg, true) },
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

// renew has a new process of the same program serve in the place of this one.
func (d *Daemon) renew(ctx context.Context, p admin.Progress) error {
	_, err := d.Upgrade(ctx, adminapi.UpgradeRequest{}, p)
	return err
}

// HandedOver reports, after Run, whether another process serves in the place of this one.
func (d *Daemon) HandedOver() bool { return d.upgrader.HandedOver() }

// takeoverService returns the running membership as the old side of a takeover needs it, nil without one.
func (d *Daemon) takeoverService() *takeover.Service {
	m := d.tenure.Current()
	if m == nil {
		return nil
	}
	svc := &takeover.Service{
		ClusterID: m.Record.ClusterID, UUID: m.Record.UUID,
		Fail: m.Fail, Failed: m.Failed, Serving: m.role.ready(),
	}
	if svc.Serving {
		s := m.service()
		svc.Parts, svc.Drain, svc.Settled = s.takeoverParts(), s.drain, s.Settled.Load
		svc.Resign, svc.RetirePort, svc.Release = m.leadership.Resign, m.Port.Retire, s.releaseExclusive
	}
	return svc
}

// takeoverParts are the parts whose state goes from the old process to the new one.
func (s *service) takeoverParts() takeover.Parts {
	m := s.m
	return takeover.Parts{
		Self: m.d.id, Publish: s.ports.Publish, Requests: s.ports.Requests, Subscription: s.master.Publications, Hub: s.hub,
		Intake: s.master.Intake, Log: m.Consensus, Clock: s.serials, Jobs: s.jobs.Table, Published: s.running,
		Routes: m.Routes, SetRoutes: s.setInheritedRoutes,
	}
}

// setInheritedRoutes sets the routes of the old process, until this one has found the other members.
func (s *service) setInheritedRoutes(nodes []router.Node, leader node.ID) {
	v := &router.View{Self: s.m.d.id, Nodes: nodes}
	s.completeRoutes(v)
	v.Leader = leader
	s.m.SetRoutes(v)
}

// releaseExclusive closes what only one process can have open. Requests in flight continue.
func (s *service) releaseExclusive() error {
	m := s.m
	s.Handed.Store(true)
	m.cancel()
	m.wg.Wait()
	var g errgroup.Group
	g.Go(func() error { return s.parts.ClosePhase(lifecycle.Exclusive) })
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

// newSuccessor connects to the process whose place this one takes.
func (d *Daemon) newSuccessor() (s *successor, err error) {
	s = &successor{d: d}
	s.side, err = d.upgrader.NewSide(takeover.NewSideConfig{
		Version: d.version, Sockets: d.sockets, ReadHost: d.readHost,
		Addresses: func() []string {
			pub, req := d.cfg.EdgeAddresses(membership.LocalAddrs())
			return append(pub, req...)
		},
		BindDoors: d.bindDoors, Build: s.build,
		OpenShared: func(ctx context.Context) error { return s.m.service().openShared(ctx) },
		CloseDoors: d.closeDoors, Logger: d.log,
	})
	return s, err
}

// build builds the membership of the old process and binds its ports.
func (s *successor) build(ctx context.Context, uuid string) (parts takeover.Parts, err error) {
	d := s.d
	record, err := d.readRecord()
	if err != nil {
		return parts, err
	}
	if record == nil || record.UUID != uuid {
		return parts, fmt.Errorf("%s belongs to another cluster than the running process", d.cfg.Paths.StateDir)
	}
	d.reg.Renew()
	if s.m, err = d.newMember(record); err != nil {
		return parts, err
	}
	if err := s.m.Bind(ctx); err != nil {
		return parts, err
	}
	return s.m.service().takeoverParts(), nil
}

// serve takes over, serves, and closes the membership.
func (s *successor) serve(ctx context.Context, open *[]io.Closer, ready func()) (err error) {
	d := s.d
	defer func() {
		if s.m != nil {
			err = errors.Join(err, s.m.Close())
			d.tenure.Set(nil)
		}
	}()
	percent := debug.SetGCPercent(-1) // until the connections are served
	if err = s.side.TakeOver(ctx); err == nil {
		err = s.m.service().serveInherited(ctx)
	}
	debug.SetGCPercent(percent)
	if err != nil {
		return err
	}
	s.side.Follow(ready)
	d.tenure.Set(s.m)
	d.upgrader.SetArrived()
	lock, err := s.side.Lock()
	if err != nil {
		return err
	}
	*open = append([]io.Closer{lock}, *open...)
	if err := d.openDoors(ctx, open); err != nil {
		return err
	}
	return d.upgrader.Finish(ctx, s.m.Serve(ctx, func(ctx context.Context) error {
		return s.m.openExclusive(ctx, s.side)
	}))
}

// openShared opens what two processes can have open.
func (s *service) openShared(ctx context.Context) error {
	s.alone.Begin() // until consensus is open
	if err := s.rotation.Begin(s.m.Consensus.View()); err != nil {
		return err
	}
	return s.parts.OpenPhase(ctx, lifecycle.Shared)
}

// serveInherited serves minions with the connections of the old process.
func (s *service) serveInherited(ctx context.Context) error {
	m := s.m
	m.ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.took = time.Now()
	s.stores.MarkCaughtUp() // the old process had
	s.minions.ReadProtocols()
	for _, of := range []lifecycle.Phase{lifecycle.Outgoing, lifecycle.Incoming} {
		if err := s.parts.OpenPhase(ctx, of); err != nil {
			return err
		}
	}
	s.Serving.Store(true)
	s.Opened.Store(true)
	m.log.Info("taken over", "node", m.d.id, "count", s.ports.Conns())
	m.handle()
	if err := m.OpenPort(ctx); err != nil {
		return err
	}
	s.duties().Start(s.ctx, &s.wg, lifecycle.EdgesTaken, lifecycle.Takeover)
	return nil
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
		m.log.Warn("cannot remove the file of a socket that is no longer used: remove it by hand", "err", err)
	}
	m.duties().Start(m.ctx, &m.wg, lifecycle.ConsensusOpen, lifecycle.Takeover)
	s := m.service()
	if err := s.openExclusive(ctx); err != nil {
		return err
	}
	m.wg.Go(func() {
		select {
		case <-side.Ended(): // until then answers of the old process may come
			s.Settled.Store(true)
		case <-m.ctx.Done():
		}
	})
	return nil
}

// openExclusive opens what is on disk.
func (s *service) openExclusive(ctx context.Context) error {
	s.stores.SkipCatchUp() // the old process had caught up
	if err := s.parts.OpenPhase(ctx, lifecycle.Exclusive); err != nil {
		return err
	}
	s.stores.SetAnswering(true)
	s.duties().Start(s.ctx, &s.wg, lifecycle.DisksFree, lifecycle.Takeover)
	s.migration.Resume()
	return nil
}

// arriving reports whether this process has taken over a moment ago and has not found the cluster yet.
func (s *service) arriving() bool {
	return !s.m.took.IsZero() && time.Since(s.m.took) < arrivingFor && s.alone.Serving()
}
