package takeover

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/router"
)

const (
	checkTimeout    = 30 * time.Second
	helloTimeout    = 30 * time.Second // it may have to ask salt-master for its version
	preparedTimeout = 30 * time.Second
	rotationTimeout = 15 * time.Second
	rotationPoll    = 50 * time.Millisecond
	// readyTimeout is how long minions wait for a new process that hangs.
	readyTimeout = 2 * time.Second
)

// oldSide is one attempt to have another process take over from this one. Until the message "go" everything is undone
// when a step fails: the new process is killed, and this one still serves.
type oldSide struct {
	*Upgrader
	svc      *Service
	progress admin.Progress
	binary   string

	conn  *handover.Conn
	child *exec.Cmd
	pid   int           // of the child; 0: it was not started
	ended chan struct{} // closed when the child has ended
	index uint64        // of consensus as the new process has it

	frozen time.Duration // how long minions were frozen
}

func (s *oldSide) runTakeover(ctx context.Context) (adminapi.Outcome, error) {
	s.progress("check", "checking the configuration with "+s.binary)
	if err := s.checkProgram(ctx); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := s.startProgram(); err != nil {
		return adminapi.Outcome{}, err
	}
	h, err := s.sendBase(ctx)
	if unknown, ok := errors.AsType[*RestartError](err); ok {
		s.stopProgram()
		if err := s.rehearseStart(ctx); err != nil {
			return adminapi.Outcome{}, err
		}
		s.svc.Fail(unknown)
		return adminapi.Outcome{Node: string(s.cfg.Node), Message: "the new program cannot take over (" + unknown.Reason +
			"): this process drains and is then restarted as the new program"}, nil
	}
	if err == nil {
		s.progress("hand over", "the new process ("+h.Version+") is prepared")
		err = s.handOver(ctx)
	}
	if err != nil {
		s.stopProgram()
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{
		Node: string(s.cfg.Node), ClusterID: s.svc.ClusterID, UUID: s.svc.UUID, Ready: true, PID: s.pid,
		Message: fmt.Sprintf("process %d (%s) has taken over from %d (%s); minions were frozen for %s",
			s.pid, h.Version, os.Getpid(), s.cfg.Version, s.frozen.Round(100*time.Microsecond)),
	}, nil
}

// rehearseStart is checkProgram, and has the new program bind what it would listen on after the end of this process.
func (s *oldSide) rehearseStart(ctx context.Context) error {
	s.progress("check", "checking the configuration and the listeners with "+s.binary)
	// A node without a cluster lists too much, which the other program does not try either.
	had, err := json.Marshal(s.cfg.Listens())
	if err != nil {
		return fmt.Errorf("list the ports of this process: %w", err)
	}
	return s.checkProgram(ctx, ReplacesEnv+"="+string(had))
}

// checkProgram has the new program read its configuration.
func (s *oldSide) checkProgram(ctx context.Context, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, s.binary, s.process.Check...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, time.Second
	if err := c.Run(); err != nil {
		err = fmt.Errorf("check the configuration with %s: %w", s.binary, err)
		if text := joinLines(string(out.Bytes()[:min(out.Len(), 2000)])); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	return nil
}

// startProgram starts the new program with its end of the socket pair.
func (s *oldSide) startProgram() error {
	conn, theirs, err := handover.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	c := exec.Command(s.binary, s.process.Args...)
	c.Env = append(os.Environ(), Env+"=3")
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{theirs}
	if err := c.Start(); err != nil {
		_ = conn.Close()
		return fmt.Errorf("start the new process: %w", err)
	}
	s.conn, s.child, s.pid, s.ended = conn, c, c.Process.Pid, make(chan struct{})
	go func() { // ends with the child, or with this process
		_ = c.Wait()
		close(s.ended)
	}()
	return nil
}

// stopProgram ends a new process that has not taken over.
func (s *oldSide) stopProgram() {
	_ = s.conn.Close()
	_ = s.child.Process.Kill()
	<-s.ended
}

// sendBase sends the new process what it can have before the freeze, and waits until it is prepared.
func (s *oldSide) sendBase(ctx context.Context) (h hello, err error) {
	m, err := s.receiveMessage(ctx, helloTimeout, msgHello)
	if err != nil {
		return h, err
	}
	if h, err = parseHello(m.Payload); err != nil {
		return h, err
	}
	if h.State != handover.StateVersion {
		reason := fmt.Sprintf("its state has version %d, this one's %d", h.State, handover.StateVersion)
		return h, &RestartError{s.binary, reason}
	}
	v := s.svc.Parts.Log.View()
	snapshot, err := writeSnapshot(v)
	if err != nil {
		return h, err
	}
	s.index = v.Index()
	names, descriptors := s.cfg.Sockets.Export()
	jobs := listJobs(s.svc.Parts.Jobs, router.DefaultJobs)
	b := base{UUID: s.svc.UUID, Names: names, Snapshot: snapshot, Jobs: jobs}
	sending, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	if err := s.conn.Send(sending, msgBase, b.encodeRecord(), descriptors...); err != nil {
		return h, err
	}
	_, err = s.receiveMessage(ctx, preparedTimeout, msgPrepared)
	return h, err
}

// receiveMessage waits for a message of the new process.
func (s *oldSide) receiveMessage(
	ctx context.Context, timeout time.Duration, want handover.Kind,
) (handover.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m, err := s.conn.Receive(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return m, fmt.Errorf("the new process sent nothing for %s", timeout)
	case errors.Is(err, handover.ErrGone):
		return m, errors.New("the new process has ended")
	case err != nil:
		return m, err
	case m.Kind == msgRefuse:
		return m, fmt.Errorf("the new process refuses: %s", joinLines(string(m.Payload)))
	case m.Kind != want:
		return m, fmt.Errorf("the new process sent %d when %d was expected", m.Kind, want)
	}
	return m, nil
}

// handOver freezes the parts, sends their state and then "go". Any failure before that resumes them.
func (s *oldSide) handOver(ctx context.Context) error {
	if err := s.awaitRotation(ctx); err != nil {
		return err
	}
	parts := &s.svc.Parts
	s.svc.Resign(ctx)                 // while others can still ask this node for its vote
	percent := debug.SetGCPercent(-1) // a cycle would scan every connection
	defer debug.SetGCPercent(percent)
	began := time.Now()
	thaw, err := parts.freezeParts(ctx)
	if err == nil {
		err = s.sendState(ctx)
	}
	if err == nil {
		_, err = s.receiveMessage(ctx, readyTimeout, msgReady)
	}
	if err == nil {
		err = s.conn.Send(ctx, msgGo, nil)
	}
	if err != nil {
		thaw()
		return err
	}
	s.frozen = time.Since(began)
	s.cfg.Logger.Info("handed over", "pid", s.pid, "dur", s.frozen)
	r := &retirement{cfg: s.cfg, process: s.process, svc: s.svc, conn: s.conn, pid: s.pid, ended: s.ended}
	parts.handAnswers(r.passAnswer)
	s.cfg.Sockets.DisownPaths()
	s.setRetirement(r)
	s.svc.Fail(errHandedOver)
	return nil
}

// awaitRotation waits until all subscribers are on one epoch.
func (s *oldSide) awaitRotation(ctx context.Context) error {
	port := s.svc.Parts.Publish
	for end := time.Now().Add(rotationTimeout); port.Stats().OnPrevious > 0; {
		if time.Now().After(end) || !backoff.Sleep(ctx, rotationPoll) {
			return fmt.Errorf("the cluster AES key is being rotated; %s still to be moved",
				wording.Plural(port.Stats().OnPrevious, "minion"))
		}
	}
	return nil
}

// sendState sends the connections and the final state.
func (s *oldSide) sendState(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	x, err := s.svc.Parts.exportParts(ctx, s.index)
	if err != nil {
		return err
	}
	if err := s.conn.Send(ctx, msgPublish, x.publish.Record, x.publish.Descriptors...); err != nil {
		return err
	}
	if err := s.conn.Send(ctx, msgRequests, x.requests.Record, x.requests.Descriptors...); err != nil {
		return err
	}
	if x.subscription < 0 {
		return s.conn.Send(ctx, msgFinal, x.final.encodeRecord())
	}
	return s.conn.Send(ctx, msgFinal, x.final.encodeRecord(), x.subscription)
}
