package daemon

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

const (
	joinRetryMin = time.Second
	joinRetryMax = 15 * time.Second
	restartLimit = 2 * time.Minute
)

// joinByItself asks the configured peers one after the other until one lets this node in, or somebody bootstraps it.
func (d *Daemon) joinByItself(ctx context.Context) {
	pause := joinRetryMin
	for {
		for _, addr := range d.cfg.PeerAddresses() {
			err := d.tryJoin(ctx, addr)
			if err == nil || ctx.Err() != nil {
				return
			}
			level := d.log.Info
			if !peer.JoinRetryable(err) && !errors.Is(err, errUnderWay) {
				level, pause = d.log.Error, joinRetryMax
			}
			level("not joined", "addr", addr, "err", err)
			d.mu.Lock()
			d.problem = err
			d.mu.Unlock()
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, joinRetryMax)
	}
}

// errUnderWay is over soon, one way or the other.
var errUnderWay = errors.New("another bootstrap or join is under way")

// joinProblem is why this node could not join by itself, nil when it did not try.
func (d *Daemon) joinProblem() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.problem
}

// tryJoin joins through addr unless a bootstrap or join is under way.
func (d *Daemon) tryJoin(ctx context.Context, addr string) error {
	select {
	case d.op <- struct{}{}:
		defer func() { <-d.op }()
	default:
		return errUnderWay
	}
	if err := d.bornAlready(); err != nil {
		return err
	}
	say := func(step, message string, _ ...int) { d.log.Info("join", "step", step, "message", message) }
	return d.joinAt(ctx, addr, d.joinRight(adminapi.JoinRequest{}), say)
}

// Bootstrap implements admin.Joiner.
func (d *Daemon) Bootstrap(ctx context.Context, r adminapi.BootstrapRequest, p admin.Progress) (adminapi.Outcome, error) {
	out, err := d.operate(ctx, r.Wait, r.Timeout, p, func() error {
		release, err := d.claimBirth(ctx)
		if err != nil {
			return err
		}
		if err := d.bootstrap(p); err != nil {
			release()
			return err
		}
		return nil
	})
	if err == nil && r.Wait {
		d.awaitAdoption(ctx, p)
	}
	return out, err
}

// Join implements admin.Joiner.
func (d *Daemon) Join(ctx context.Context, r adminapi.JoinRequest, p admin.Progress) (adminapi.Outcome, error) {
	return d.operate(ctx, r.Wait, r.Timeout, p, func() error {
		return joinError(d.joinAt(ctx, d.cfg.PeerAddress(r.Peer), d.joinRight(r), p))
	})
}

// joinError gives a failed join the code that scripts look at.
func joinError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, peer.ErrSlowDown):
		return adminapi.Errorf(adminapi.CodeUnreachable, "an earlier attempt failed; wait some seconds and try again", "%v", err)
	case errors.Is(err, peer.ErrUnreachable), errors.Is(err, peer.ErrNotReady):
		return adminapi.Errorf(adminapi.CodeUnreachable, "check the address and that saltclusterd runs there", "%v", err)
	default:
		return adminapi.Errorf(adminapi.CodeRefused, "nothing was changed on this node", "%v", err)
	}
}

// operate makes this node a member by act and waits for it to be a ready one.
func (d *Daemon) operate(ctx context.Context, waitReady bool, timeout time.Duration, p admin.Progress, act func() error) (adminapi.Outcome, error) {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	select { // a node that tries to join by itself lets go after each try
	case d.op <- struct{}{}:
		defer func() { <-d.op }()
	case <-ctx.Done():
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeBusy, "wait for it to end", "another bootstrap or join is under way")
	}
	if err := d.bornAlready(); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := act(); err != nil {
		return adminapi.Outcome{}, err
	}
	if err := d.restartMaster(ctx, p); err != nil {
		p("master", err.Error())
	}
	if waitReady {
		if err := d.awaitVoter(ctx, p); err != nil {
			return adminapi.Outcome{}, err
		}
	}
	return d.outcome(ctx)
}

// restartMaster runs the operator's command that makes the local master read its new identity.
func (d *Daemon) restartMaster(ctx context.Context, p admin.Progress) error {
	args := d.cfg.Salt.RestartCommand
	if len(args) == 0 {
		return nil
	}
	p("master", "restarting the salt-master: "+strings.Join(args, " "))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restartLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("master_restart_command failed: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// sayEvery is how often whoever waits hears how far it is.
const sayEvery = time.Second

// portsHeld says that this node lacks nothing but the ports for minions, which the salt-master has until somebody restarts it. To
// wait for that would keep an operator from doing it.
func (d *Daemon) portsHeld() bool {
	m := d.current()
	return m != nil && m.svc != nil && m.svc.held.Load() && len(d.cfg.Salt.RestartCommand) == 0
}

// awaitVoter waits until this node votes and serves minions, or waits for a person.
func (d *Daemon) awaitVoter(ctx context.Context, p admin.Progress) error {
	last, said := "", time.Time{}
	for {
		step, done := d.progress()
		if done || d.portsHeld() {
			return nil
		}
		if step != last && time.Since(said) > sayEvery {
			p("wait", step)
			last, said = step, time.Now()
		}
		if !backoff.Sleep(ctx, 100*time.Millisecond) {
			return adminapi.Errorf(adminapi.CodeTimeout, "saltclusterctl status shows how far it is",
				"this node is a member, but not ready yet: %s", step)
		}
	}
}

// progress says what this node still lacks to be a ready voter.
func (d *Daemon) progress() (step string, done bool) {
	m := d.current()
	if m == nil {
		return "opening the peer port", false
	}
	st := m.cons.Status()
	switch {
	case !st.CaughtUp:
		return "catching up with the cluster", false
	case m.svc != nil && !m.ready():
		return m.svc.waitsFor(), false
	case !m.isVoter(st):
		return "a learner, caught up: the leader makes it a voter", false
	default:
		return "", true
	}
}
