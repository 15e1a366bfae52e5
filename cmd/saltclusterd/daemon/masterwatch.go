package daemon

import (
	"context"
	"fmt"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
)

const (
	// masterHeartbeat and masterSilence find out within five seconds that the local master's process stands still. PINGs are
	// answered by its I/O thread, whatever Python is busy with.
	masterHeartbeat = time.Second
	masterSilence   = 4 * time.Second
	// versionSettle lets a master that was just started use the machine for itself, before Python is started to ask it.
	versionSettle = 2 * time.Second
	// renewAgain is the pause after saltclusterd could not be made anew for another version, doubled up to renewMost.
	renewAgain = 10 * time.Second
	renewMost  = 5 * time.Minute
)

// masterProbe is a request that every worker of every version answers at once (salt/master.py:ClearFuncs.ping).
func masterProbe() []byte {
	load := saltwire.AppendMapHeader(nil, 1)
	load = saltwire.AppendRaw(saltwire.AppendRaw(load, "cmd"), "ping")
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{Enc: saltwire.EncClear, Load: load, Version: 3, HasVersion: true})
}

// askAgain is the pause between questions to a master that does not answer.
const askAgain = 100 * time.Millisecond

// actorsWithin is how long the master's reactor may take to hear events once its workers answer.
const actorsWithin = 10 * time.Second

// takesEvents returns when the master acts on events as one that runs: its workers answer, its reactor listens, and its bus is known.
// Or ctx has ended.
func (s *service) takesEvents(ctx context.Context) {
	var asked sync.WaitGroup
	defer asked.Wait()
	asked.Go(func() { _, _ = s.askVersion(ctx) })
	s.workersAnswer(ctx)
	ctx, cancel := context.WithTimeout(ctx, actorsWithin)
	defer cancel()
	s.bus.AwaitActors(ctx)
}

// askVersion asks the installed salt-master what it is, and tells the bus. A master that was started just now is that one. While it cannot
// be asked the bus stays as it is: it is the same master, most likely.
func (s *service) askVersion(ctx context.Context) (localmaster.Version, error) {
	v, err := localmaster.DetectVersion(ctx, s.m.d.cfg.Salt.MasterCommand)
	if err != nil {
		if ctx.Err() == nil {
			s.m.log.Warn("salt-master's version not known", "err", err)
		}
		return v, err
	}
	s.bus.Serves(v)
	return v, nil
}

// workersAnswer returns when one of the master's workers has answered, or ctx has ended.
func (s *service) workersAnswer(ctx context.Context) {
	for probe := masterProbe(); ctx.Err() == nil; {
		if _, err := s.req.Do(ctx, probe); err == nil || !backoff.Sleep(ctx, askAgain) {
			return
		}
	}
}

// masterBack notes that the local master publishes again: it may have been started.
func (s *service) masterBack() {
	s.masterUp()
	s.missed.NotifyConnected()
	select {
	case s.back <- struct{}{}:
	default:
	}
}

// watchVersion asks the salt-master for its version whenever it was started: an upgrade of Salt changes formats that
// several parts of saltclusterd were made for.
func (s *service) watchVersion(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.back:
		}
		if !backoff.Sleep(ctx, versionSettle) {
			return
		}
		v, err := s.askVersion(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
		case v == s.m.d.master.Version:
			s.newer.Store(nil)
		default:
			text := v.String()
			s.newer.Store(&text)
			s.m.log.Warn("salt-master has another version", "version", text, "before", s.m.d.master.Version.String())
			s.m.d.checks.Kick("version")
			s.eventsTaken(ctx)
			if s.renew(ctx, v) {
				return
			}
		}
	}
}

// takenWithin is longer than the bus waits for a master's workers and its reactor.
const takenWithin = 40 * time.Second

// eventsTaken returns when the master's bus has taken the events that waited for it while it was away. They wait for its workers and its
// reactor, and a process that ends fires them at once: to nobody, or once more than the next one, which finds them in the journal. A master
// whose workers do not answer yet loses nothing by it.
func (s *service) eventsTaken(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, takenWithin)
	defer cancel()
	for s.bus.Flush(ctx) != nil || s.returns.Unfired() > 0 {
		if !backoff.Sleep(ctx, askAgain) {
			return
		}
	}
}

// renew makes everything anew for the master's version: another process of this very program, which asks the master what it
// is, takes over all connections. It is tried until it works, or the master is what it was. true: it has.
func (s *service) renew(ctx context.Context, v localmaster.Version) bool {
	if !v.Supported() {
		return false
	}
	for pause := renewAgain; ; pause = min(2*pause, renewMost) {
		_, err := s.m.d.Upgrade(ctx, adminapi.UpgradeRequest{}, func(step, message string, _ ...int) {
			s.m.log.Debug("renewed for the salt-master's version", "op", step, "reason", message)
		})
		if err == nil {
			return true
		}
		s.m.log.Warn("not renewed for the salt-master's version", "version", v.String(), "err", err)
		select {
		case <-ctx.Done():
			return false
		case <-s.back: // it was started again, maybe as another one
			select {
			case s.back <- struct{}{}:
			default:
			}
			return false
		case <-time.After(pause):
		}
	}
}

// checkVersion warns while saltclusterd serves another version than the master has.
func (s *service) checkVersion(context.Context) health.Result {
	newer := s.newer.Load()
	if newer == nil {
		return fine
	}
	return health.Result{
		Level:  health.Warn,
		Reason: fmt.Sprintf("the salt-master is %s now; saltclusterd still serves it as %s", *newer, s.m.d.master.Version),
		Hint:   "saltclusterd tries to renew itself; its log says why it cannot. systemctl restart saltclusterd does, too",
	}
}

// masterUp notes that the local master (re)appeared, or goes on after it stood still: it may be another process, with a new AES key and
// workers that have forgotten all sessions.
func (s *service) masterUp() {
	s.sessions.Reset()
	s.umask.masterStarted()
	s.returns.MasterStarted()
	s.proxy.NotifyMasters()
	select {
	case s.learn <- struct{}{}:
	default:
	}
}

// learnRetry is the pause after a sign-in at the local master that failed.
const learnRetry = 2 * time.Second

// keepLearning learns the local master's key whenever it may have changed, so that the first publication does not wait.
func (s *service) keepLearning(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.learn:
		}
		s.lookAgain()
		for s.req.Up() {
			err := s.intake.Learn(ctx)
			s.m.gossip.UpdateMeta()
			s.m.lookAtRoutes()
			if err == nil {
				said = ""
				s.m.log.Info("signed in at the local master")
				break
			}
			if text := err.Error(); text != said { // it may need an operator, and is tried every two seconds
				said = text
				s.m.log.Warn("not signed in at the local master", "err", err)
			}
			if !backoff.Sleep(ctx, learnRetry) {
				return
			}
		}
	}
}
