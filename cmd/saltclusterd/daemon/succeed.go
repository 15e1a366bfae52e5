package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/router"
)

// The new process's side of an upgrade in place. It prepares everything that needs nothing of the old process's, takes the
// connections, and does not touch them before "go". Then it serves at once with what the old process knew, and opens
// consensus and everything on disk when that is free.

const (
	baseWithin = 30 * time.Second
	goWithin   = 10 * time.Second
	freeWithin = time.Minute
	// arrivingFor is how long a process that has taken over may take to find the cluster before that is news.
	arrivingFor = 10 * time.Second
	// routesFor is how long the old process's word on who is alive holds at most.
	routesFor = 5 * time.Second
)

// successor is a process that takes over.
type successor struct {
	d    *Daemon
	m    *member
	conn *handover.Conn

	main, free, end chan struct{} // closed when the old process says so, or has ended
}

// succeed is Run for a process that takes over from another one.
func (d *Daemon) succeed(ctx context.Context, ready func()) (err error) {
	conn, err := handover.Inherit(d.process.Takeover)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &successor{d: d, conn: conn, main: make(chan struct{}), free: make(chan struct{}), end: make(chan struct{})}
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

// serve takes over, serves, and closes the membership.
func (s *successor) serve(ctx context.Context, open *[]closer, ready func()) (err error) {
	defer func() {
		if s.m != nil {
			err = errors.Join(err, s.m.Close())
			s.d.setMember(nil)
		}
	}()
	percent := debug.SetGCPercent(-1) // until the connections are served
	err = s.takeOver(ctx)
	debug.SetGCPercent(percent)
	if err != nil {
		return err
	}
	go s.listen() // ends when the old process does
	go func() {
		<-s.main
		ready()
	}()
	s.d.setMember(s.m)
	s.d.arriving.Store(false)
	if err := s.lock(open); err != nil {
		return err
	}
	if err := s.d.openDoors(ctx, open); err != nil {
		return err
	}
	return s.d.afterServing(ctx, s.m.serveOn(ctx, s))
}

// takeOver returns when this process serves the old one's minions, or with a reason why it does not, which the old
// process has been told.
func (s *successor) takeOver(ctx context.Context) error {
	err := s.prepare(ctx)
	if err == nil {
		err = s.accept(ctx)
	}
	if err != nil {
		s.d.closeDoors()
		telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = s.conn.Send(telling, sayRefuse, []byte(err.Error())) // it may have ended
		return fmt.Errorf("take over: %w", err)
	}
	s.d.sockets.OwnPaths()
	return s.m.takeUp(ctx)
}

// prepare does everything that needs nothing the old process holds. Whatever this process will listen on it binds here: what cannot be had must
// be known while the old one serves.
func (s *successor) prepare(ctx context.Context) error {
	d := s.d
	if err := d.readHost(ctx); err != nil {
		return err
	}
	h := hello{State: handover.StateVersion, Version: d.version}
	if err := s.conn.Send(ctx, sayHello, h.encode()); err != nil {
		return err
	}
	msg, err := s.hear(ctx, baseWithin, sayBase)
	if err != nil {
		return err
	}
	b, err := parseBase(msg.Payload)
	if err != nil || len(b.Names) != len(msg.Descriptors) {
		msg.Close()
		return errors.Join(errors.New("unusable beginning"), err)
	}
	d.sockets.Inherit(b.Names, msg.Descriptors)
	pub, req := d.cfg.EdgeAddresses(localAddrs())
	if err := d.sockets.Reserve(ctx, "tcp", append(pub, req...)...); err != nil {
		return fmt.Errorf("listen for minions: %w", err)
	}
	if err := d.bindDoors(ctx); err != nil {
		return err
	}
	seed, err := membership.ReadRecord(d.cfg.Paths.StateDir)
	if err == nil && (seed == nil || seed.UUID != b.UUID) {
		err = fmt.Errorf("%s belongs to another cluster than the running process", d.cfg.Paths.StateDir)
	}
	if err := d.checkMembership(seed, err); err != nil {
		return err
	}
	d.reg.renew()
	if s.m, err = d.newMember(seed); err != nil {
		return err
	}
	if err := s.m.port.Bind(ctx); err != nil {
		return err
	}
	if err := s.m.gossip.Bind(ctx); err != nil {
		return err
	}
	if err := s.m.cons.Preload(bytes.NewReader(b.Snapshot)); err != nil {
		return err
	}
	b.Jobs.record(s.m.svc.jobs)
	s.m.svc.published.Inherit(b.Jobs.of(s.d.id))
	if err := s.m.svc.prepare(ctx); err != nil {
		return err
	}
	return s.conn.Send(ctx, sayPrepared, nil)
}

// accept takes the connections, says ready and waits for go.
func (s *successor) accept(ctx context.Context) error {
	svc := s.m.svc
	for _, side := range []struct {
		kind handover.Kind
		take func(edge.State) error
	}{{sayPub, svc.pub.Import}, {sayReq, svc.reqs.Import}} {
		msg, err := s.hear(ctx, 0, side.kind)
		if err != nil {
			return err
		}
		if err := side.take(edge.State{Record: msg.Payload, Descriptors: msg.Descriptors}); err != nil {
			return err
		}
	}
	msg, err := s.hear(ctx, goWithin, sayRest)
	if err != nil {
		return err
	}
	r, err := parseRest(msg.Payload)
	if err != nil {
		return err
	}
	if err := s.m.know(r, msg.Descriptors); err != nil {
		return err
	}
	if err := s.conn.Send(ctx, sayReady, nil); err != nil {
		return err
	}
	_, err = s.hear(ctx, goWithin, sayGo)
	return err
}

// hear waits for a word of the old process; within 0: as long as it lives.
func (s *successor) hear(ctx context.Context, within time.Duration, want handover.Kind) (handover.Message, error) {
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	m, err := s.conn.Receive(ctx)
	if err == nil && m.Kind != want {
		m.Close()
		err = fmt.Errorf("the old process said %d when %d was due", m.Kind, want)
	}
	return m, err
}

// listen takes what the old process says after go, until its end.
func (s *successor) listen() {
	mainKnown, freed := false, false
	for {
		m, err := s.conn.Receive(context.Background())
		if err != nil || m.Kind == sayEnd {
			break
		}
		switch m.Kind {
		case sayMain:
			mainKnown = true
			close(s.main)
		case sayFree:
			freed = true
			close(s.free)
		case sayAnswer:
			a, err := edge.ParseAnswer(m.Payload)
			if err != nil {
				s.d.log.Error("answer of the old process lost", "err", err)
				continue
			}
			s.m.svc.reqs.Finish(a)
		}
	}
	if n := s.m.svc.reqs.Orphan(); n > 0 {
		s.d.log.Warn("requests of the old process stay without an answer", "count", n)
	}
	if !mainKnown {
		close(s.main)
	}
	if !freed {
		close(s.free)
	}
	close(s.end)
}

// lock takes the lock of state_dir, which is the same open file in both processes.
func (s *successor) lock(open *[]closer) error {
	f := s.d.sockets.Take(takeover.LockName)
	if f == nil {
		return errors.New("the old process did not hand over the lock of state_dir")
	}
	s.d.sockets.Keep(takeover.LockName, f)
	*open = append([]closer{&dirLock{f}}, *open...)
	return nil
}

// know takes what the old process knew when everything stood still. The descriptor is that of the subscription.
func (m *member) know(r rest, fds []int) error {
	s := m.svc
	if len(r.Snapshot) > 0 {
		if err := m.cons.Preload(bytes.NewReader(r.Snapshot)); err != nil {
			return err
		}
	}
	s.clock.GoOn(r.Clock)
	r.Jobs.record(s.jobs)
	s.published.Inherit(r.Jobs.of(s.m.d.id))
	m.view.Store(&router.View{
		Self: m.d.id, Nodes: r.Nodes, Jobs: s.jobs, Leader: r.Leader, Events: s.eventRules, Relaying: s.relay.InFlight,
		Pusher: m.pusher(),
	})
	if err := errors.Join(s.hub.Import(r.Hub), s.hub.ImportRecent(r.Recent), s.intake.Import(r.Intake)); err != nil {
		return err
	}
	switch {
	case len(fds) == 1:
		return s.sub.Import(r.Sub, fds[0])
	case len(fds) > 1 || len(r.Sub) > 0:
		return errors.New("unusable subscription to the master")
	}
	return nil
}

// prepare opens what touches nothing that the old process has.
func (s *service) prepare(ctx context.Context) error {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.alone.Store(true) // until consensus is open
	if err := s.begin(s.m.cons.View()); err != nil {
		return err
	}
	return s.openPhase(ctx, shared)
}

// takeUp serves minions with the connections of the old process.
func (m *member) takeUp(ctx context.Context) error {
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
	if err := m.port.Open(ctx); err != nil {
		return err
	}
	m.open = append(m.open, m.port)
	startDuties(s.ctx, &s.wg, s.duties(), edgesTaken, true)
	return nil
}

// serveOn opens the rest when it is free, and returns when ctx ends or a part has failed.
func (m *member) serveOn(ctx context.Context, s *successor) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { // ends with ctx
		defer cancel()
		ended <- m.watch(ctx)
	}()
	if err := m.settle(ctx, s); err != nil && ctx.Err() == nil {
		return err
	}
	return <-ended
}

// settle opens what only one process can have.
func (m *member) settle(ctx context.Context, s *successor) error {
	select {
	case <-s.free:
	case <-time.After(freeWithin):
		return errors.New("the old process does not let go of consensus")
	case <-ctx.Done():
		return nil
	}
	if err := m.cons.Open(ctx); err != nil {
		return err
	}
	m.open = append(m.open, m.cons)
	if err := m.gossip.Open(ctx, nil); err != nil {
		return err
	}
	m.open = append(m.open, m.gossip)
	if err := m.d.sockets.DiscardInherited(); err != nil {
		m.log.Warn("a socket on which nobody answers any more is left over: remove it", "err", err)
	}
	startDuties(m.ctx, &m.wg, m.duties(), consensusOpen, true)
	if err := m.svc.settle(ctx); err != nil {
		return err
	}
	m.wg.Go(func() {
		select {
		case <-s.end: // until then answers of the old process may come
			m.svc.settled.Store(true)
		case <-m.ctx.Done():
		}
	})
	return nil
}

// settle opens what is on disk.
func (s *service) settle(ctx context.Context) error {
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

// awaitPeers waits until gossip has found whom the old process knew to be there.
func (m *member) awaitPeers(ctx context.Context) {
	known := m.routes().Nodes
	for end := time.Now().Add(routesFor); time.Now().Before(end); {
		missing := 0
		for _, n := range known {
			if g, ok := m.gossip.Member(n.ID); n.Alive && n.ID != m.d.id && (!ok || !g.Meta.Ready) {
				missing++
			}
		}
		if missing == 0 || !backoff.Sleep(ctx, catchUpPoll) {
			return
		}
	}
}

// arriving says whether this process has taken over a moment ago and is still finding the cluster.
func (m *member) arriving() bool {
	return !m.took.IsZero() && time.Since(m.took) < arrivingFor && m.svc.alone.Load()
}

// TakeoverFrom reads the descriptor of the process to take over from, 0 when there is none.
func TakeoverFrom(getenv func(string) string) (uintptr, error) {
	text := getenv(TakeoverEnv)
	if text == "" {
		return 0, nil
	}
	var fd uintptr
	if _, err := fmt.Sscanf(text, "%d", &fd); err != nil || fd < 3 {
		return 0, fmt.Errorf("%s=%q names no descriptor", TakeoverEnv, text)
	}
	return fd, os.Unsetenv(TakeoverEnv)
}
