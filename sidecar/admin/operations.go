package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// serveLong serves an operation of which one at a time may run.
func serveLong[Q adminapi.Operation](s *Server, verb string,
	run func(context.Context, Q, Progress) (adminapi.Outcome, error)) http.HandlerFunc {
	return serveOperation(s, verb, s.runLong, run)
}

// serveStreamed serves an operation that may run beside others.
func serveStreamed[Q adminapi.Operation](s *Server, verb string,
	run func(context.Context, Q, Progress) (adminapi.Outcome, error)) http.HandlerFunc {
	return serveOperation(s, verb, s.runStreamed, run)
}

// serveOperation carries out what the body of a request asks for, and streams its progress.
func serveOperation[Q adminapi.Operation](s *Server, verb string,
	stream func(http.ResponseWriter, *http.Request, string, time.Duration,
		func(context.Context, Progress) (adminapi.Outcome, error)),
	run func(context.Context, Q, Progress) (adminapi.Outcome, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if q, ok := decodeBody[Q](s, w, r, verb); ok {
			stream(w, r, verb, q.WaitTime(), func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
				return run(ctx, q, p)
			})
		}
	}
}

// runLong runs the one long operation that may run, and streams it.
func (s *Server) runLong(w http.ResponseWriter, r *http.Request, verb string, timeout time.Duration,
	run func(context.Context, Progress) (adminapi.Outcome, error),
) {
	if !s.long.TryLock() {
		s.writeError(w, verb, adminapi.Errorf(adminapi.CodeBusy, "wait for it; saltclusterctl status shows its progress",
			"another operation is running"))
		return
	}
	release := sync.OnceFunc(s.long.Unlock)
	defer release()
	s.runStreamed(w, r, verb, timeout, func(ctx context.Context, p Progress) (adminapi.Outcome, error) {
		defer release() // before its end is told: who hears it may start the next one
		return run(ctx, p)
	})
}

// runStreamed runs an operation and streams it.
func (s *Server) runStreamed(w http.ResponseWriter, r *http.Request, verb string, timeout time.Duration,
	run func(context.Context, Progress) (adminapi.Outcome, error),
) {
	ctx, cancel := r.Context(), context.CancelFunc(func() {})
	if timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	p, _ := ctx.Value(peerKey{}).(peer)
	s.log.Info("admin operation started", "verb", verb, "uid", p.uid)
	started := time.Now()
	out := &stream{w: w, control: http.NewResponseController(w), timeout: s.lineTimeout}
	out.control.SetReadDeadline(time.Time{}) // the server's ReadTimeout must not end a long wait
	w.Header().Set("Content-Type", "application/x-ndjson")
	outcome, err := run(ctx, out.sendProgress)
	if err == nil {
		s.metrics.countRequest(verb, "ok")
		s.log.Info("admin operation done", "verb", verb, "dur", time.Since(started))
		out.sendEvent(adminapi.Event{Outcome: &outcome})
		return
	}
	e := out.explainError(ctx, err)
	s.metrics.countRequest(verb, string(e.Code))
	s.log.Warn("admin operation failed", "verb", verb, "dur", time.Since(started), "reason", e.Code, "err", e)
	out.sendEvent(adminapi.Event{Error: e})
}

// stream writes events, one JSON value per line. It is safe for concurrent use.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // how long one line may wait for the client to read

	mu     sync.Mutex
	last   string // message of the newest progress
	closed bool   // the last line is out, or the client does not read
}

func (o *stream) sendProgress(step, message string, percent ...int) {
	p := adminapi.Progress{Time: time.Now().UTC(), Step: step, Message: message}
	if len(percent) > 0 {
		p.Percent = &percent[0]
	}
	o.sendEvent(adminapi.Event{Progress: &p})
}

func (o *stream) sendEvent(e adminapi.Event) {
	line, err := json.Marshal(e)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.Progress != nil {
		o.last = e.Progress.Message
	}
	if o.closed {
		return
	}
	o.control.SetWriteDeadline(time.Now().Add(o.timeout))
	_, err = o.w.Write(append(line, '\n'))
	if err == nil {
		err = o.control.Flush()
	}
	o.closed = err != nil || e.Progress == nil // the response must not be touched after its handler
}

// explainError says what was being waited for when the time was over.
func (o *stream) explainError(ctx context.Context, err error) *adminapi.Error {
	e := toError(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, told := errors.AsType[*adminapi.Error](err); !told && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e = adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl status shows its progress", "timed out at the step: %s",
			o.last)
		if o.last == "" {
			e.Message = "timed out before anything was done"
		}
	}
	return e
}
