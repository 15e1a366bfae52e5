package daemon

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire"
)

// What an old process still does when another one serves its minions: it lets go of what only one process can have, and
// passes on the answers to the requests that were under way.

const (
	tailLimit     = 30 * time.Second // for the last answer
	barrierWithin = 5 * time.Second
	answerWithin  = 5 * time.Second // for the new process to take one
	tailPoll      = 5 * time.Millisecond
	// tailEnd is when this process ends whatever it waits for, a disk that hangs for instance: the other one can open what is on
	// disk then, and gives up after freeWithin.
	tailEnd = tailLimit + 15*time.Second
)

// tail is the rest of the life of a process that has handed over.
type tail struct {
	d     *Daemon
	m     *member
	conn  *handover.Conn
	pid   int           // of the new process
	ended chan struct{} // closed when it has ended
}

func (d *Daemon) setTail(t *tail) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tail = t
}

func (d *Daemon) tailOf() *tail {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tail
}

// HandedOver says, after Run, that another process serves in our place.
func (d *Daemon) HandedOver() bool { return d.tailOf() != nil }

// afterServing runs the tail if that is why the service ended.
func (d *Daemon) afterServing(ctx context.Context, err error) error {
	if t := d.tailOf(); t != nil && errors.Is(err, errHandedOver) {
		return t.run(ctx)
	}
	return err
}

// pass sends the end of a request to the new process.
func (t *tail) pass(a edge.Answer) {
	if a.Kind == edge.Dropped && signsIn(a.Body) {
		a.Kind = edge.Unserved // asking twice does no harm, and the minion would wait for nothing
	} else if a.Kind == edge.Dropped {
		a.Body = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
	defer cancel()
	if err := t.conn.Send(ctx, sayAnswer, a.Append()); err != nil {
		t.d.log.Warn("answer not handed over", "err", err)
	}
}

// signsIn tells whether a request is a sign-in.
func signsIn(body []byte) bool {
	env, err := saltwire.ParseEnvelope(body)
	if err != nil || env.Enc != saltwire.EncClear {
		return false
	}
	peek, err := saltwire.PeekLoad(env.Load)
	return err == nil && peek.Cmd == "_auth"
}

// run lets go of everything, in order, and returns when no answer is due any more.
func (t *tail) run(ctx context.Context) error {
	defer t.conn.Close()
	ctx, cancel := context.WithTimeout(ctx, tailLimit)
	defer cancel()
	time.AfterFunc(tailEnd, t.giveUp)
	began := time.Now()
	var g errgroup.Group
	g.Go(func() error { return t.introduce(ctx) })
	for _, door := range t.d.doors { // the new process answers behind them
		g.Go(door.Close)
	}
	relayed := make(chan error, 1)
	go func() { relayed <- t.m.port.Retire(ctx) }() // ends with ctx
	g.Go(func() error {
		if err := t.m.release(); err != nil {
			t.d.log.Warn("not everything was let go of in order", "err", err)
		}
		t.d.log.Info("consensus is free for the new process", "dur", time.Since(began))
		return t.conn.Send(ctx, sayFree, nil)
	})
	err := g.Wait()
	t.awaitAnswers(ctx)
	select {
	case <-relayed:
	case <-t.ended:
	}
	err = errors.Join(err, t.conn.Send(ctx, sayEnd, nil))
	t.d.log.Info("this process ends, another one serves", "pid", t.pid, "dur", time.Since(began))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("end of the handover: %w", err)
	}
	return nil
}

// giveUp ends a process that has not ended by itself.
func (t *tail) giveUp() {
	t.d.log.Error("this process cannot let go of everything and is ended; another one serves", "pid", t.pid, "dur", tailEnd)
	t.d.process.End()
}

// introduce makes the service manager know the new process as the service.
func (t *tail) introduce(ctx context.Context) error {
	t.d.process.Notify("MAINPID=" + strconv.Itoa(t.pid))
	waiting, cancel := context.WithTimeout(ctx, barrierWithin)
	defer cancel()
	t.d.process.Barrier(waiting)
	return t.conn.Send(ctx, sayMain, nil)
}

// awaitAnswers waits until every request that was in flight has come to its end.
func (t *tail) awaitAnswers(ctx context.Context) {
	for t.m.svc.reqs.Unanswered() > 0 {
		select {
		case <-t.ended:
			return
		default:
		}
		if !backoff.Sleep(ctx, tailPoll) {
			t.d.log.Warn("requests were not answered in time", "count", t.m.svc.reqs.Unanswered())
			return
		}
	}
}

// release lets go of what only one process can have. Requests under way go on.
func (m *member) release() error {
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
	g.Go(m.gossip.Hand)
	g.Go(s.hub.Close)
	g.Go(m.cons.Close)
	return g.Wait()
}

// monotonicUsec is the time that service managers compare.
func monotonicUsec() string {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // cannot fail for this clock
	return strconv.FormatInt(ts.Nano()/1000, 10)
}
