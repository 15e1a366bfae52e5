package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/handover"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/router"
)

// The old process's side of an upgrade in place. Until it has said "go" everything can be undone, and is: the new process
// is killed and this one goes on. What follows is in tail.go, the new process's side in succeed.go.

// TakeoverEnv names the descriptor on which a new process hears the one it takes over from.
const TakeoverEnv = "SALTCLUSTERD_TAKEOVER"

// Process is what the daemon must know of the process it runs in, to put another one in its place.
type Process struct {
	Binary   string             // path it was started as; empty: it cannot be replaced
	Args     []string           // without the name
	Check    []string           // arguments that make the binary check its configuration
	Takeover uintptr            // descriptor of the process to take over from; 0: none
	Notify   func(state string) // tells the service manager (sd_notify)
	Barrier  func(context.Context)
	End      func() // ends the process at once
}

// SetProcess is to be called before Run.
func (d *Daemon) SetProcess(p Process) {
	if p.Notify == nil {
		p.Notify = func(string) {}
	}
	if p.Barrier == nil {
		p.Barrier = func(context.Context) {}
	}
	if p.End == nil {
		p.End = func() {}
	}
	d.process = p
	d.arriving.Store(p.Takeover != 0)
}

const (
	checkWithin    = 30 * time.Second
	helloWithin    = 30 * time.Second // it may have to ask salt-master for its version
	preparedWithin = 30 * time.Second
	rotationWithin = 15 * time.Second
	freezeWithin   = 2 * time.Second
	// readyWithin is how long minions wait for a new process that hangs.
	readyWithin = 2 * time.Second
	// settledWithin is how long an upgrade waits for the one before it.
	settledWithin = 15 * time.Second
	latestOnly    = 1024 // jobs told again while everything stands still
)

// RestartError ends Run when another program must be started in place of this one, since it cannot take over.
type RestartError struct {
	Binary string
	Reason string
}

func (e *RestartError) Error() string { return "restart as " + e.Binary + ": " + e.Reason }

// errHandedOver ends the service of a member that another process goes on with.
var errHandedOver = errors.New("another process has taken over")

// Upgrade implements admin.Upgrader.
func (d *Daemon) Upgrade(ctx context.Context, r adminapi.UpgradeRequest, say admin.Progress) (adminapi.Outcome, error) {
	select {
	case d.op <- struct{}{}:
	default:
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait for it; saltclusterctl status shows how far it is",
			"another operation is under way")
	}
	defer func() { <-d.op }()
	u := &upgrade{d: d, m: d.current(), say: say, binary: r.Binary}
	if u.binary == "" {
		u.binary = d.process.Binary
	}
	if u.binary == "" {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "restart it: systemctl restart saltclusterd",
			"this process does not know the program it was started as")
	}
	if u.m == nil && d.arriving.Load() { // a signal that was sent to both processes
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait for it", "this process is taking over from another one at the moment")
	}
	if u.m != nil && u.m.ready() && u.m.svc.drain.InProgress() {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait until it is drained (saltclusterctl drain shows how far it is), or saltclusterctl undrain",
			"this node is being drained: an upgrade would let the rest of its minions go at once")
	}
	if u.m == nil || !u.m.ready() || u.m.svc.drain.Draining() {
		return d.replace(ctx, r, u)
	}
	if u.m.leaving() || !u.awaitSettled(ctx) {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "try again in a second", "an upgrade is still under way")
	}
	d.process.Notify("RELOADING=1\nMONOTONIC_USEC=" + monotonicUsec())
	out, err := u.run(ctx)
	if err != nil {
		d.notReloaded(r, err)
		d.log.Error("upgrade failed, this process goes on", "path", u.binary, "err", err)
		d.process.Notify("READY=1\nSTATUS=upgrade failed, the old process goes on: " + oneLine(err.Error()))
		hint := "nothing has changed; the log of the new process has more"
		if u.child == nil {
			hint = "nothing has changed, and no other process was started"
		}
		return out, adminapi.Errorf(adminapi.CodeRefused, hint, "the running saltclusterd goes on: %v", err)
	}
	return out, nil
}

// notReloaded keeps why the program that runs did not take over from itself: what is in its files now is not what it works with. That another
// program did not, who tried that was told.
func (d *Daemon) notReloaded(r adminapi.UpgradeRequest, err error) {
	if r.Binary == "" {
		why := oneLine(err.Error())
		d.unloaded.Store(&why)
	}
}

// checkReload warns while the last reload has led to nothing: the process that one leads to knows of none.
func (d *Daemon) checkReload(context.Context) health.Result {
	why := d.unloaded.Load()
	if why == nil {
		return fine
	}
	return health.Result{
		Level: health.Warn, Reason: "the last reload failed, and saltclusterd goes on with what it had: " + *why,
		Hint: "saltclusterctl config check says what is wrong in its files, saltclusterctl doctor in the salt-master's; then saltclusterctl upgrade",
	}
}

// upgrade is one attempt.
type upgrade struct {
	d      *Daemon
	m      *member
	say    admin.Progress
	binary string

	conn  *handover.Conn
	child *exec.Cmd
	ended chan struct{} // closed when the child has ended
	rev   uint64        // of consensus, as told beforehand

	frozen time.Duration // for how long everything stood still
}

func (u *upgrade) run(ctx context.Context) (adminapi.Outcome, error) {
	u.say("check", "checking the configuration with "+u.binary)
	if err := u.check(ctx); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := u.start(); err != nil {
		return adminapi.Outcome{}, err
	}
	h, err := u.introduce(ctx)
	if unknown, ok := errors.AsType[*RestartError](err); ok {
		u.stop()
		if err := u.rehearse(ctx); err != nil {
			return adminapi.Outcome{}, err
		}
		u.m.fail(unknown)
		return adminapi.Outcome{Node: string(u.d.id), Message: "the new program cannot take over (" + unknown.Reason +
			"): this one drains and is restarted as the new one"}, nil
	}
	if err == nil {
		u.say("hand over", "the new process ("+h.Version+") is prepared")
		err = u.handOver(ctx)
	}
	if err != nil {
		u.stop()
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{
		Node: string(u.d.id), ClusterID: u.m.seed.ClusterID, UUID: u.m.seed.UUID, Ready: true, PID: u.child.Process.Pid,
		Message: fmt.Sprintf("process %d (%s) has taken over from %d (%s); minions were frozen for %s",
			u.child.Process.Pid, h.Version, os.Getpid(), u.d.version, u.frozen.Round(100*time.Microsecond)),
	}, nil
}

// rehearse is check, and has the new program try whether it would come up when this process has ended.
func (u *upgrade) rehearse(ctx context.Context) error {
	u.say("check", "checking with "+u.binary+" the configuration, and what it is to listen on")
	had, err := json.Marshal(u.d.listens(true)) // of a node in no cluster too much, which the other one does not try either
	if err != nil {
		return fmt.Errorf("say what this process listens on: %w", err)
	}
	return u.check(ctx, takeover.ReplacesEnv+"="+string(had))
}

// check has the new program read its configuration.
func (u *upgrade) check(ctx context.Context, env ...string) error {
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, u.binary, u.d.process.Check...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr, c.WaitDelay = &out, &out, time.Second
	if err := c.Run(); err != nil {
		err = fmt.Errorf("check the configuration with %s: %w", u.binary, err)
		if text := oneLine(string(out.Bytes()[:min(out.Len(), 2000)])); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return err
	}
	return nil
}

// start starts the new program with its end of the socket pair.
func (u *upgrade) start() error {
	conn, theirs, err := handover.Pair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	c := exec.Command(u.binary, u.d.process.Args...)
	c.Env = append(os.Environ(), TakeoverEnv+"=3")
	c.Stdout, c.Stderr, c.ExtraFiles = os.Stdout, os.Stderr, []*os.File{theirs}
	if err := c.Start(); err != nil {
		_ = conn.Close()
		return fmt.Errorf("start the new process: %w", err)
	}
	u.conn, u.child, u.ended = conn, c, make(chan struct{})
	go func() { // ends with the child, or with this process
		_ = c.Wait()
		close(u.ended)
	}()
	return nil
}

// stop ends a new process that has not taken over.
func (u *upgrade) stop() {
	_ = u.conn.Close()
	_ = u.child.Process.Kill()
	<-u.ended
}

// introduce tells the new process what can be told beforehand, and waits until it is prepared.
func (u *upgrade) introduce(ctx context.Context) (h hello, err error) {
	m, err := u.hear(ctx, helloWithin, sayHello)
	if err != nil {
		return h, err
	}
	if h, err = parseHello(m.Payload); err != nil {
		return h, err
	}
	if h.State != handover.StateVersion {
		return h, &RestartError{u.binary, fmt.Sprintf("its state has version %d, this one's %d", h.State, handover.StateVersion)}
	}
	v := u.m.cons.View()
	snapshot, err := snapshotOf(v)
	if err != nil {
		return h, err
	}
	u.rev = v.Index()
	names, fds := u.d.sockets.Export()
	b := base{UUID: u.m.seed.UUID, Names: names, Snapshot: snapshot, Jobs: latestJobs(u.m.svc.jobs, router.DefaultJobs)}
	sending, cancel := context.WithTimeout(ctx, helloWithin)
	defer cancel()
	if err := u.conn.Send(sending, sayBase, b.encode(), fds...); err != nil {
		return h, err
	}
	_, err = u.hear(ctx, preparedWithin, sayPrepared)
	return h, err
}

// hear waits for a word of the new process.
func (u *upgrade) hear(ctx context.Context, within time.Duration, want handover.Kind) (handover.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	m, err := u.conn.Receive(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return m, fmt.Errorf("the new process said nothing for %s", within)
	case errors.Is(err, handover.ErrGone):
		return m, errors.New("the new process has ended")
	case err != nil:
		return m, err
	case m.Kind == sayRefuse:
		return m, fmt.Errorf("the new process refuses: %s", oneLine(string(m.Payload)))
	case m.Kind != want:
		return m, fmt.Errorf("the new process said %d when %d was due", m.Kind, want)
	}
	return m, nil
}

// handOver freezes, tells everything and says go. Before that every failure is undone.
func (u *upgrade) handOver(ctx context.Context) error {
	if err := u.awaitRotation(ctx); err != nil {
		return err
	}
	s := u.m.svc
	u.m.leadership.Resign(ctx)        // while others can still ask this node for its vote
	percent := debug.SetGCPercent(-1) // a cycle looks at every connection, too
	defer debug.SetGCPercent(percent)
	began := time.Now()
	undo, err := u.freeze(ctx)
	if err == nil {
		err = u.tell(ctx)
	}
	if err == nil {
		_, err = u.hear(ctx, readyWithin, sayReady)
	}
	if err == nil {
		err = u.conn.Send(ctx, sayGo, nil)
	}
	if err != nil {
		undo()
		return err
	}
	u.frozen = time.Since(began)
	u.d.log.Info("handed over", "pid", u.child.Process.Pid, "dur", u.frozen)
	t := &tail{d: u.d, m: u.m, conn: u.conn, pid: u.child.Process.Pid, ended: u.ended}
	s.sub.Hand()
	s.hub.Hand()
	s.reqs.Hand(t.pass) // first, for answers wait
	s.pub.Hand()
	u.d.sockets.DisownPaths()
	u.d.setTail(t)
	u.m.fail(errHandedOver)
	return nil
}

// awaitSettled waits until the upgrade that brought this process here has ended: the old one's last answers, and its grip on what is
// on disk.
func (u *upgrade) awaitSettled(ctx context.Context) bool {
	settled := &u.m.svc.settled
	if !settled.Load() {
		u.say("wait", "the upgrade before this one still ends")
	}
	for end := time.Now().Add(settledWithin); !settled.Load(); {
		if time.Now().After(end) || u.m.leaving() || !backoff.Sleep(ctx, 20*time.Millisecond) {
			return false
		}
	}
	return true
}

// awaitRotation waits until all subscribers are on one epoch.
func (u *upgrade) awaitRotation(ctx context.Context) error {
	for end := time.Now().Add(rotationWithin); u.m.svc.pub.Stats().OnPrevious > 0; {
		if time.Now().After(end) || !backoff.Sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the cluster AES key is being rotated; %s still to be moved", plural(u.m.svc.pub.Stats().OnPrevious, "minion"))
		}
	}
	return nil
}

// freeze makes everything stand still that minions and their publications go through. undo lets it go on.
func (u *upgrade) freeze(ctx context.Context) (undo func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, freezeWithin)
	defer cancel()
	s := u.m.svc
	var done []func()
	undo = func() {
		for i := len(done) - 1; i >= 0; i-- {
			done[i]()
		}
	}
	for _, step := range []struct {
		do   func(context.Context) error
		undo func()
	}{ // readers first: publications go on while they come to rest
		{s.reqs.Freeze, s.reqs.Thaw},
		{s.pub.Freeze, s.pub.Thaw},
		{s.sub.Pause, s.sub.Unpause},
		{func(context.Context) error { s.hub.Freeze(); return nil }, s.hub.Thaw},
	} {
		if err := step.do(ctx); err != nil {
			return undo, err
		}
		done = append(done, step.undo)
	}
	return undo, nil
}

// tell sends the connections and everything else.
func (u *upgrade) tell(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	s := u.m.svc
	var wg sync.WaitGroup
	var pub edge.State
	var pubErr error
	wg.Go(func() { pub, pubErr = s.pub.Export(ctx) })
	req, reqErr := s.reqs.Export(ctx)
	wg.Wait()
	r, fd, restErr := u.rest()
	if err := errors.Join(pubErr, reqErr, restErr); err != nil {
		return err
	}
	if err := u.conn.Send(ctx, sayPub, pub.Record, pub.Descriptors...); err != nil {
		return err
	}
	if err := u.conn.Send(ctx, sayReq, req.Record, req.Descriptors...); err != nil {
		return err
	}
	if fd < 0 {
		return u.conn.Send(ctx, sayRest, r.encode())
	}
	return u.conn.Send(ctx, sayRest, r.encode(), fd)
}

// rest writes down what is no connection of a minion.
func (u *upgrade) rest() (r rest, fd int, err error) {
	s := u.m.svc
	v := u.m.cons.View()
	if v.Index() != u.rev {
		if r.Snapshot, err = snapshotOf(v); err != nil {
			return r, -1, err
		}
	}
	r.Clock = s.clock.Last()
	r.Jobs = latestJobs(s.jobs, latestOnly)
	r.Nodes, r.Leader = u.m.routes().Nodes, u.m.routes().Leader
	r.Hub, r.Recent, r.Intake = s.hub.Export(), s.hub.ExportRecent(), s.intake.Export()
	r.Sub, fd, err = s.sub.Export()
	return r, fd, err
}

// leaving says whether another process has taken over, or is about to be started.
func (m *member) leaving() bool { return len(m.failed) > 0 || m.d.tailOf() != nil }

// oneLine makes a text of another process fit for a log line and a status.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
