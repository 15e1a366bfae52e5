package daemon

import (
	"context"

	"saltclusterd/cmd/saltclusterd/clocks"
	"saltclusterd/cmd/saltclusterd/keysadmin"
	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/operator"
	"saltclusterd/sidecar/health"
)

// when makes a health check of what only some nodes have. A node without it has nothing to check there.
func when[T any](of func() (T, error), check func(T, context.Context) health.Result) health.CheckFunc {
	return func(ctx context.Context) health.Result {
		part, err := of()
		if err != nil {
			return fine
		}
		return check(part, ctx)
	}
}

// ofService makes a health check of one of the service's, which is fine on a node that serves no minions.
func (d *Daemon) ofService(check func(*service, context.Context) health.Result) health.CheckFunc {
	return when(ofService(d, func(s *service) *service { return s }), check)
}

// newChecks returns the health checks, not open yet: parts of a takeover report changes to them before that.
func (d *Daemon) newChecks() *health.Checker {
	checks := health.NewChecker(health.CheckerConfig{SlowStart: d.cfg.Health.AgentSlowStart, Logger: d.log,
		Registerer: d.reg.Host, Adapt: operator.HostWords()})
	checks.Register("pulse", health.ScopeLive, operator.NewLockCheck(d.TakeLocks).Check)
	checks.Register("member", health.ScopeServe, d.checkMember)
	running := ofMember(d, func(m *member) *member { return m })
	checks.Register("consensus", health.ScopeReady, when(running, (*member).checkConsensus))
	checks.Register("network", health.ScopeReady, when(running, (*member).CheckNetwork))
	checks.Register("behind", health.ScopeServe,
		d.ofService(func(s *service, _ context.Context) health.Result {
			return d.behind.Check(operator.Behind{
				For: s.m.Consensus.Behind(), LogError: s.m.Consensus.LogError(), StateDir: d.cfg.Paths.StateDir,
				OthersServe: func() bool { return s.m.Routes().OthersServe(d.id) }})
		}))
	checks.Register("edges", health.ScopeServe, d.ofService((*service).checkEdges))
	checks.Register("master", health.ScopeReady|health.ScopeReq, d.ofService((*service).checkMaster))
	checks.Register("own master", health.ScopeAPI, d.ofService((*service).checkOwnMaster))
	checks.Register("version", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return s.master.Watch.CheckVersion() }))
	checks.Register("options", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return s.master.Followed.Check() }))
	checks.Register("job ids", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return s.jobs.Known.Check() }))
	checks.Register("returns", health.ScopeReady|health.ScopeReq,
		d.ofService(func(s *service, ctx context.Context) health.Result {
			if !s.ready() {
				return fine
			}
			return s.native.CheckReturns(ctx)
		}))
	checks.Register("roots", health.ScopeReady,
		d.ofService(func(s *service, ctx context.Context) health.Result { return s.roots.Check(ctx) }))
	checks.Register("tls", health.ScopeReady,
		d.ofService(func(s *service, ctx context.Context) health.Result { return s.ports.TLS.Check(ctx) }))
	checks.Register("keys", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return keysadmin.CheckHeld(d.id, s.dir.Held()) }))
	checks.Register("keystore", health.ScopeReady,
		d.ofService(func(s *service, _ context.Context) health.Result { return d.keyStore().Check(s.dir.Store()) }))
	checks.Register("share", health.ScopeReady, d.ofService((*service).checkShare))
	checks.Register(operator.ClockCheck, health.ScopeReady,
		when(ofMember(d, func(m *member) *clocks.Watch { return m.clocks }),
			func(w *clocks.Watch, _ context.Context) health.Result { return w.Check() }))
	checks.Register("disk", health.ScopeReady, func(context.Context) health.Result {
		return operator.CheckDisk(operator.StoreDirectories(d.cfg.Paths.StateDir, d.master, d.shares())...)
	})
	checks.Register("reload", health.ScopeReady, d.upgrader.CheckReload)
	checks.Register("own", health.ScopeReady, d.inspector.CheckOwn)
	return checks
}

var fine = health.Result{Level: health.OK}

// leads says whether this node leads the cluster, as far as it knows.
func (d *Daemon) leads() bool {
	m := d.tenure.Current()
	return m != nil && m.Consensus.Status().Leader == d.id
}

func (d *Daemon) checkMember(context.Context) health.Result {
	if d.tenure.Current() == nil {
		return d.absence().Check()
	}
	return fine
}

func (m *member) checkConsensus(context.Context) health.Result {
	st := m.Consensus.Status()
	return operator.CheckConsensus(operator.Consensus{
		TakenOver: m.role.arriving(), Detached: m.Consensus.Detached(), HasQuorum: st.HasQuorum, CaughtUp: st.CaughtUp,
		LogError: m.Consensus.LogError(), StateDir: m.d.cfg.Paths.StateDir,
		Rejoin: membership.RejoinHint, QuorumHint: m.remover.QuorumHint,
	})
}

// checkEdges fails while the edges are closed. A node that was drained before its restart has them closed on purpose.
func (s *service) checkEdges(context.Context) health.Result {
	if s.Opened.Load() || s.drain.Draining() {
		return fine
	}
	return operator.CheckEdges(s.WaitsFor(), s.ports.IsHeld())
}

func (s *service) checkMaster(context.Context) health.Result {
	return operator.CheckMaster(s.local.Problem(), len(s.m.UsableRing()) > 0)
}
func (s *service) checkOwnMaster(context.Context) health.Result { return s.local.CheckOwn() }
