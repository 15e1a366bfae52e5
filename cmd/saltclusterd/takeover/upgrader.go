package takeover

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// Operations admits one operation at a time that begins, replaces or hands over a membership.
type Operations interface {
	TryBegin() bool // false: another one is under way
	End()
}

// Drain is the drain of this node (*drain.Runner).
type Drain interface {
	InProgress() bool
	Draining() bool
}

// Service is the running membership of this process, which another process may take over.
type Service struct {
	ClusterID, UUID string
	Fail            func(error) // ends the membership
	Failed          func() bool // it is about to end
	Serving         bool        // it serves minions; what follows is set only then

	Parts   Parts
	Drain   Drain
	Settled func() bool           // the takeover by this process has ended
	Resign  func(context.Context) // hands the leadership over if this node has it

	// RetirePort returns when requests of other members have ended; the new process has the port.
	RetirePort func(context.Context) error
	// Release closes everything that only one process can have open. Requests in flight continue.
	Release func() error
}

// Config is what an Upgrader works with.
type Config struct {
	Node       node.ID
	Version    string
	Operations Operations
	Sockets    *Sockets
	Service    func() *Service    // nil for a node without a cluster
	Listens    func() []Listening // what a member with these options listens on
	Doors      func() []io.Closer // the servers for load balancers and operators
	Logger     *slog.Logger
}

// Upgrader has another process serve in the place of this one. It implements admin.Upgrader.
type Upgrader struct {
	cfg     Config
	process Process

	arriving     atomic.Bool            // from the start until this process serves in the place of another one
	restarts     chan *RestartError     // requested while no membership was running
	reloadFailed atomic.Pointer[string] // why the last reload failed

	mu         sync.Mutex
	retirement *retirement // set when another process has taken over
}

const (
	// settledTimeout is how long an upgrade waits for the one before it.
	settledTimeout = 15 * time.Second
	settledPoll    = 20 * time.Millisecond
)

// NewUpgrader returns an Upgrader for a process that cannot be replaced before SetProcess.
func NewUpgrader(cfg Config) *Upgrader {
	return &Upgrader{cfg: cfg, process: Process{}.withDefaults(), restarts: make(chan *RestartError, 1)}
}

// SetProcess must be called before anything else.
func (u *Upgrader) SetProcess(p Process) {
	u.process = p.withDefaults()
	u.arriving.Store(p.Takeover != 0)
}

// TakesOver reports whether this process was started to take over from another one.
func (u *Upgrader) TakesOver() bool { return u.process.Takeover != 0 }

// SetArrived ends the time in which this process refuses an upgrade because it is taking over.
func (u *Upgrader) SetArrived() { u.arriving.Store(false) }

// HandedOver reports whether another process serves in the place of this one.
func (u *Upgrader) HandedOver() bool { return u.retired() != nil }

// Restarts receives requests to restart that came while no membership was running.
func (u *Upgrader) Restarts() <-chan *RestartError { return u.restarts }

// EndForRestart ends a membership by fail if a restart is due. Without a membership the receiver of Restarts ends.
func (u *Upgrader) EndForRestart(fail func(error)) {
	select {
	case r := <-u.restarts:
		fail(r)
	default:
	}
}

// CheckReload is a health check that warns while the last reload has failed. The process that replaces this one
// starts without the warning.
func (u *Upgrader) CheckReload(context.Context) health.Result {
	why := u.reloadFailed.Load()
	if why == nil {
		return health.Result{Level: health.OK}
	}
	return health.Result{
		Level: health.Warn, Reason: "the last reload failed, and saltclusterd continues with its former configuration: " + *why,
		Hint: "saltclusterctl config check lists errors in its files, saltclusterctl doctor in the salt-master's; " +
			"then saltclusterctl upgrade",
	}
}

// Upgrade implements admin.Upgrader.
func (u *Upgrader) Upgrade(ctx context.Context, r adminapi.UpgradeRequest, p admin.Progress) (adminapi.Outcome, error) {
	if !u.cfg.Operations.TryBegin() {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy,
			"wait for it; saltclusterctl status shows its progress", "another operation is under way")
	}
	defer u.cfg.Operations.End()
	s := &oldSide{Upgrader: u, svc: u.cfg.Service(), progress: p, binary: r.Binary}
	if s.binary == "" {
		s.binary = u.process.Binary
	}
	if s.binary == "" {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "restart it: systemctl restart saltclusterd",
			"the program file of this process is not known")
	}
	serving := s.svc != nil && s.svc.Serving
	switch {
	case s.svc == nil && u.arriving.Load(): // a signal that was sent to both processes
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait for it",
			"this process is taking over from another one at the moment")
	case serving && s.svc.Drain.InProgress():
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy,
			"wait until it is drained (saltclusterctl drain shows its progress), or saltclusterctl undrain",
			"this node is being drained: an upgrade would disconnect its remaining minions at once")
	case !serving || s.svc.Drain.Draining():
		return u.restartProcess(ctx, r, s)
	case u.leaving(s.svc) || !u.awaitSettled(ctx, s):
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "try again in a second",
			"an upgrade is still under way")
	}
	u.process.Notify("RELOADING=1\nMONOTONIC_USEC=" + monotonicUsec())
	out, err := s.runTakeover(ctx)
	if err != nil {
		u.noteFailure(r, s.binary, err)
		u.process.Notify("READY=1\nSTATUS=upgrade failed, the old process continues: " + joinLines(err.Error()))
		hint := "nothing has changed; the log of the new process has more"
		if s.pid == 0 {
			hint = "nothing has changed, and no other process was started"
		}
		return out, adminapi.Errorf(adminapi.CodeRefused, hint, "the running saltclusterd continues: %v", err)
	}
	return out, nil
}

// restartProcess ends this process and has the program started in its place, with the same pid. It is for processes
// that serve no minions: a witness, a node without a cluster, one that catches up or is drained.
func (u *Upgrader) restartProcess(
	ctx context.Context, r adminapi.UpgradeRequest, s *oldSide,
) (adminapi.Outcome, error) {
	if err := s.rehearseStart(ctx); err != nil {
		u.noteFailure(r, s.binary, err)
		u.process.Notify("STATUS=upgrade failed, the old process continues: " + joinLines(err.Error()))
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused,
			"nothing has changed, and no other process was started", "the running saltclusterd continues: %v", err)
	}
	select {
	case u.restarts <- &RestartError{s.binary, "this node serves no minions: there is nothing to hand over"}:
	default: // another one is pending
	}
	if s.svc != nil {
		u.EndForRestart(s.svc.Fail)
	}
	return adminapi.Outcome{
		Node: string(u.cfg.Node), PID: os.Getpid(),
		Message: "this node serves no minions, so there was nothing to hand over: it was restarted as " + s.binary,
	}, nil
}

// noteFailure logs a failed upgrade. CheckReload reports it if the program is this process's own, because then its
// configuration files are not those in use; an operator who names another program sees the error.
func (u *Upgrader) noteFailure(r adminapi.UpgradeRequest, binary string, err error) {
	if r.Binary == "" {
		why := joinLines(err.Error())
		u.reloadFailed.Store(&why)
	}
	u.cfg.Logger.Error("upgrade failed, this process continues", "path", binary, "err", err)
}

// leaving reports whether another process has taken over, or is about to be started.
func (u *Upgrader) leaving(svc *Service) bool { return svc.Failed() || u.HandedOver() }

// awaitSettled waits for the end of the takeover by this process: the old one has sent its last answers and closed
// what is on disk.
func (u *Upgrader) awaitSettled(ctx context.Context, s *oldSide) bool {
	if !s.svc.Settled() {
		s.progress("wait", "the previous upgrade has not ended yet")
	}
	for end := time.Now().Add(settledTimeout); !s.svc.Settled(); {
		if time.Now().After(end) || u.leaving(s.svc) || !backoff.Sleep(ctx, settledPoll) {
			return false
		}
	}
	return true
}

func (u *Upgrader) retired() *retirement {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.retirement
}

func (u *Upgrader) setRetirement(r *retirement) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.retirement = r
}

// errHandedOver ends the membership of a process after another one has taken over.
var errHandedOver = errors.New("another process has taken over")

// Finish ends the work of the old process if err, with which its membership has ended, is due to a takeover. Any
// other error is returned.
func (u *Upgrader) Finish(ctx context.Context, err error) error {
	if r := u.retired(); r != nil && errors.Is(err, errHandedOver) {
		return r.runRetirement(ctx)
	}
	return err
}

// joinLines makes the output of another process fit for a log line and a status.
func joinLines(s string) string { return strings.Join(strings.Fields(s), " ") }
