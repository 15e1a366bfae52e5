package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/sidecar/health"
)

// ofService makes a health check of one of the service's, which is fine on a node that serves no minions.
func (d *Daemon) ofService(check func(*service, context.Context) health.Result) health.CheckFunc {
	current := ofService(d, func(s *service) *service { return s })
	return func(ctx context.Context) health.Result {
		s, err := current()
		if err != nil {
			return fine
		}
		return check(s, ctx)
	}
}

// newChecks returns the health checks, not open yet: parts of a takeover report changes to them before that.
func (d *Daemon) newChecks() *health.Checker {
	checks := health.NewChecker(health.CheckerConfig{SlowStart: d.cfg.Health.AgentSlowStart, Logger: d.log,
		Registerer: d.reg.Host})
	checks.Register("pulse", health.ScopeLive, operator.NewPulse(d.Pulse).Check)
	checks.Register("member", health.ScopeServe, d.checkMember)
	checks.Register("consensus", health.ScopeReady, d.checkConsensus)
	checks.Register("behind", health.ScopeServe, d.ofService((*service).checkBehind))
	checks.Register("edges", health.ScopeServe, d.ofService((*service).checkEdges))
	checks.Register("master", health.ScopeReady|health.ScopeReq, d.ofService((*service).checkMaster))
	checks.Register("version", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return s.master.Watch.CheckVersion() }))
	checks.Register("options", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return s.master.Followed.Check() }))
	checks.Register("job ids", health.ScopeReady, d.ofService((*service).checkJobIDs))
	checks.Register("returns", health.ScopeReady|health.ScopeReq, d.ofService((*service).checkReturns))
	checks.Register("roots", health.ScopeReady,
		d.ofService(func(s *service, ctx context.Context) health.Result { return s.roots.Check(ctx) }))
	checks.Register("tls", health.ScopeReady,
		d.ofService(func(s *service, ctx context.Context) health.Result { return s.ports.TLS.Check(ctx) }))
	checks.Register("keys", health.ScopeReady, d.ofService((*service).checkHeldKeys))
	checks.Register("keystore", health.ScopeReady, d.ofService((*service).checkKeyStore))
	checks.Register("share", health.ScopeReady, d.ofService((*service).checkShare))
	checks.Register(operator.ClockCheck, health.ScopeReady, d.checkClock)
	checks.Register("disk", health.ScopeReady, d.checkDisk)
	checks.Register("reload", health.ScopeReady, d.upgrader.CheckReload)
	checks.Register("own", health.ScopeReady, d.inspector.CheckOwn)
	return checks
}

var fine = health.Result{Level: health.OK}

// leads says whether this node leads the cluster, as far as it knows.
func (d *Daemon) leads() bool {
	m := d.current()
	return m != nil && m.Consensus.Status().Leader == d.id
}

func (d *Daemon) checkMember(context.Context) health.Result {
	if d.current() == nil {
		return d.absence().Check()
	}
	return fine
}

func (d *Daemon) checkConsensus(context.Context) health.Result {
	m := d.current()
	if m == nil {
		return fine // said by the check "member"
	}
	st := m.Consensus.Status()
	return operator.CheckConsensus(operator.Consensus{
		TakenOver: m.role.arriving(), Detached: m.Consensus.Detached(), HasQuorum: st.HasQuorum, CaughtUp: st.CaughtUp,
		Rejoin: membership.RejoinHint, QuorumHint: m.remover.QuorumHint,
	})
}

func (s *service) checkBehind(context.Context) health.Result {
	m := s.m
	return m.d.behind.Check(operator.Behind{
		For: m.Consensus.Behind(), LogError: m.Consensus.LogError(), StateDir: m.d.cfg.Paths.StateDir,
		OthersServe: func() bool { return m.Routes().OthersServe(m.d.id) },
	})
}

// checkEdges fails while the edges are closed. A node that was drained before its restart has them closed on purpose.
func (s *service) checkEdges(context.Context) health.Result {
	if s.opened.Load() || s.drain.Draining() {
		return fine
	}
	return operator.CheckEdges(s.waitsFor(), s.ports.IsHeld())
}

func (s *service) checkMaster(context.Context) health.Result {
	return operator.CheckMaster(s.local.Problem(), len(s.m.UsableRing()) > 0)
}

// checkDisk checks the room for what this node and its master store.
func (d *Daemon) checkDisk(context.Context) health.Result {
	return operator.CheckDisk(operator.StoreDirectories(d.cfg.Paths.StateDir, d.master, d.shares())...)
}

// checkClock judges this host's clock.
func (d *Daemon) checkClock(context.Context) health.Result {
	if m := d.current(); m != nil {
		return m.clocks.Check()
	}
	return fine
}

// checkHeldKeys warns of keys that are held until an operator decides about them.
func (s *service) checkHeldKeys(context.Context) health.Result {
	return keysadmin.CheckHeld(s.m.d.id, s.dir.Held())
}
