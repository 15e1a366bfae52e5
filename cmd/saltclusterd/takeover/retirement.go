package takeover

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/saltwire"
)

const (
	retirementTimeout = 30 * time.Second // for the last answer
	barrierTimeout    = 5 * time.Second
	answerTimeout     = 5 * time.Second // for the new process to receive one
	answerPoll        = 5 * time.Millisecond
	// processTimeout is when the old process is ended even if it still waits, for example for a disk that hangs. The
	// new one can then open what is on disk; it fails after freeTimeout.
	processTimeout = retirementTimeout + 15*time.Second
)

// retirement is what the old process does after the new one serves: it closes what only one process can have open,
// and passes on the answers to requests in flight.
type retirement struct {
	cfg     Config
	process Process
	svc     *Service
	conn    *handover.Conn
	pid     int           // of the new process
	ended   chan struct{} // closed when it has ended
}

// passAnswer sends the end of a request to the new process.
func (r *retirement) passAnswer(a edge.Answer) {
	if a.Kind == edge.Dropped && isSignIn(a.Body) {
		a.Kind = edge.Unserved // a sign-in can be repeated, and the minion would wait for its answer
	} else if a.Kind == edge.Dropped {
		a.Body = nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	if err := r.conn.Send(ctx, msgAnswer, a.Append()); err != nil {
		r.cfg.Logger.Warn("answer not handed over", "err", err)
	}
}

// isSignIn reports whether a request is a sign-in.
func isSignIn(body []byte) bool {
	env, err := saltwire.ParseEnvelope(body)
	if err != nil || env.Enc != saltwire.EncClear {
		return false
	}
	peek, err := saltwire.PeekLoad(env.Load)
	return err == nil && peek.Cmd == "_auth"
}

// runRetirement closes everything, in order, and returns when no answer is due any more.
func (r *retirement) runRetirement(ctx context.Context) error {
	defer r.conn.Close()
	ctx, cancel := context.WithTimeout(ctx, retirementTimeout)
	defer cancel()
	time.AfterFunc(processTimeout, r.endProcess) // it counts until the end of the process
	began := time.Now()
	var g errgroup.Group
	g.Go(func() error { return r.announceProcess(ctx) })
	for _, door := range r.cfg.Doors() { // the new process has the same ones
		g.Go(door.Close)
	}
	relayed := make(chan error, 1)
	go func() { relayed <- r.svc.RetirePort(ctx) }() // ends with ctx
	g.Go(func() error {
		if err := r.svc.Release(); err != nil {
			r.cfg.Logger.Warn("not everything was released cleanly", "err", err)
		}
		r.cfg.Logger.Info("consensus is free for the new process", "dur", time.Since(began))
		return r.conn.Send(ctx, msgFree, nil)
	})
	err := g.Wait()
	r.awaitAnswers(ctx)
	select {
	case <-relayed:
	case <-r.ended:
	}
	err = errors.Join(err, r.conn.Send(ctx, msgEnd, nil))
	r.cfg.Logger.Info("this process ends; another one serves", "pid", r.pid, "dur", time.Since(began))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("end of the handover: %w", err)
	}
	return nil
}

// endProcess ends this process if it has not ended in time.
func (r *retirement) endProcess() {
	r.cfg.Logger.Error("this process cannot release everything and is terminated; another process serves",
		"pid", r.pid, "dur", processTimeout)
	r.process.End()
}

// announceProcess informs the service manager that the new process is the main one of the service.
func (r *retirement) announceProcess(ctx context.Context) error {
	r.process.Notify("MAINPID=" + strconv.Itoa(r.pid))
	waiting, cancel := context.WithTimeout(ctx, barrierTimeout)
	defer cancel()
	r.process.Barrier(waiting)
	return r.conn.Send(ctx, msgMain, nil)
}

// awaitAnswers waits until every request that was in flight has ended.
func (r *retirement) awaitAnswers(ctx context.Context) {
	port := r.svc.Parts.Requests
	for port.Unanswered() > 0 {
		select {
		case <-r.ended:
			return
		default:
		}
		if !backoff.Sleep(ctx, answerPoll) {
			r.cfg.Logger.Warn("requests were not answered in time", "count", port.Unanswered())
			return
		}
	}
}
