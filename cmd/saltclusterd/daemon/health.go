package daemon

import (
	"context"
	"slices"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
)

// ofService makes a health check of one of the service's. A node that serves no minions has nothing to check there.
func (d *Daemon) ofService(check func(*service, context.Context) health.Result) health.CheckFunc {
	return func(ctx context.Context) health.Result {
		if s := d.currentService(); s != nil {
			return check(s, ctx)
		}
		return fine
	}
}

// newChecks are the health checks, not open yet: parts of a process that takes over tell them of changes before it has opened its doors.
func (d *Daemon) newChecks() *health.Checker {
	checks := health.NewChecker(health.CheckerConfig{SlowStart: d.cfg.Health.AgentSlowStart, Logger: d.log, Registerer: d.reg.host})
	checks.Register("pulse", health.ScopeLive, (&pulse{of: d.Pulse}).check)
	checks.Register("member", health.ScopeServe, d.checkMember)
	checks.Register("consensus", health.ScopeReady, d.checkConsensus)
	checks.Register("behind", health.ScopeServe, d.ofService((*service).checkBehind))
	checks.Register("edges", health.ScopeServe, d.checkEdges)
	checks.Register("master", health.ScopeReady|health.ScopeReq, d.checkMaster)
	checks.Register("version", health.ScopeReady, d.ofService((*service).checkVersion))
	checks.Register("options", health.ScopeReady, d.ofService((*service).checkOptions))
	checks.Register("job ids", health.ScopeReady, d.ofService((*service).checkJobIDs))
	checks.Register("returns", health.ScopeReady|health.ScopeReq, d.checkReturns)
	checks.Register("roots", health.ScopeReady, d.ofService(func(s *service, ctx context.Context) health.Result { return s.roots.Check(ctx) }))
	checks.Register("keys", health.ScopeReady, d.ofService((*service).checkHeldKeys))
	checks.Register("keystore", health.ScopeReady, d.ofService((*service).checkKeyStore))
	checks.Register("share", health.ScopeReady, d.ofService((*service).checkShare))
	checks.Register(checkNameClock, health.ScopeReady, d.checkClock)
	checks.Register("disk", health.ScopeReady, d.checkDisk)
	checks.Register("reload", health.ScopeReady, d.upgrader.CheckReload)
	checks.Register("own", health.ScopeReady, d.checkOwn)
	return checks
}

// checkNameClock is the check of this host's clock.
const checkNameClock = "clock"

var fine = health.Result{Level: health.OK}

// leads says whether this node leads the cluster, as far as it knows.
func (d *Daemon) leads() bool {
	m := d.current()
	return m != nil && m.cons.Status().Leader == d.id
}

func (d *Daemon) checkMember(context.Context) health.Result {
	if d.current() == nil {
		if left, err := readRemoval(d.cfg.Paths.StateDir); err == nil && left != nil {
			return health.Result{Level: health.Fail, Reason: left.sentence(), Hint: rejoinHint, Maintenance: true}
		}
		if d.starting() {
			return health.Result{Level: health.Fail, Reason: startingText, Hint: "it takes seconds"}
		}
		return health.Result{
			Level: health.Fail, Reason: "this node belongs to no cluster yet",
			Hint: "run saltclusterctl bootstrap here, or saltclusterctl join PEER", Maintenance: true,
		}
	}
	return fine
}

func (d *Daemon) checkConsensus(context.Context) health.Result {
	m := d.current()
	if m == nil {
		return fine // said by the check "member"
	}
	switch st := m.cons.Status(); {
	case m.arriving():
		return health.Result{Level: health.Warn, Reason: "this process has just taken over and is finding the cluster", Hint: "it takes a second"}
	case m.cons.Detached():
		return health.Result{
			Level: health.Fail, Reason: "this node was removed from the cluster",
			Hint: rejoinHint,
		}
	case !st.HasQuorum:
		return health.Result{
			Level: health.Fail, Reason: "no majority of the cluster can be reached: key decisions wait",
			Hint: m.census().hint(),
		}
	case !st.CaughtUp:
		return health.Result{Level: health.Fail, Reason: "this node is catching up with the cluster", Hint: "it takes seconds"}
	}
	return fine
}

func (d *Daemon) checkEdges(context.Context) health.Result {
	m := d.current()
	if m == nil {
		return fine
	}
	if m.svc != nil && !m.ready() && !m.svc.drain.Draining() { // one that was drained before its restart has them closed on purpose
		hint := "the log says why when it takes longer than seconds"
		if m.svc.held.Load() {
			hint = "systemctl restart salt-master, if it was not since setup; else ss -ltnp 'sport = :4505 or sport = :4506' names it"
		}
		return health.Result{Level: health.Fail, Reason: "4505 and 4506 are not open: " + m.svc.waitsFor(), Hint: hint}
	}
	return fine
}

// checkMaster fails only when nobody's master can be reached: while the local one is down, peers' masters serve.
func (d *Daemon) checkMaster(ctx context.Context) health.Result {
	m := d.current()
	if m == nil {
		return fine
	}
	if m.svc == nil {
		return fine
	}
	problem := m.svc.masterProblem(ctx)
	if problem == "" {
		return fine
	}
	if len(m.ringNodes()) == 0 {
		return health.Result{Level: health.Fail, Reason: "no salt-master of the cluster answers", Hint: problem}
	}
	return health.Result{Level: health.Warn, Reason: "the local salt-master does not serve; the others' do", Hint: problem}
}

// reasons are what the checks of this node find fault with. That it is drained everybody knows.
func (d *Daemon) reasons() (out []adminapi.Reason) {
	for _, f := range d.checks.Report(health.ScopeReady).Bad() {
		if f.Check != health.Draining {
			out = append(out, adminapi.Reason{Check: f.Check, Level: levelOf(f.Level), Message: f.Reason, Hint: f.Hint})
		}
	}
	return boundReasons(out)
}

func levelOf(l health.Level) adminapi.Level {
	if l == health.Fail {
		return adminapi.LevelFail
	}
	return adminapi.LevelWarn
}

// Of what another node finds fault with so much is taken.
const (
	maxReasons    = 10
	maxReasonText = 500 // bytes
)

func boundReasons(list []adminapi.Reason) []adminapi.Reason {
	list = list[:min(len(list), maxReasons)]
	for i := range list {
		r := &list[i]
		if r.Level != adminapi.LevelFail {
			r.Level = adminapi.LevelWarn
		}
		for _, text := range []*string{&r.Check, &r.Message, &r.Hint} {
			*text = strings.ToValidUTF8((*text)[:min(len(*text), maxReasonText)], "")
		}
	}
	return list
}

// withHealth puts into a row what the node itself says. By gossip nodes tell each other only whether they serve; one that is cut off still does,
// and would stand as ready above the line that says it is not.
func withHealth(row *adminapi.Member, reasons []adminapi.Reason) {
	if row.Ready == nil {
		return
	}
	row.Health = reasons
	for _, r := range reasons {
		if r.Level == adminapi.LevelFail {
			row.Reasons = append(row.Reasons, r.Check)
		}
	}
	ready := *row.Ready && len(row.Reasons) == 0
	row.Ready = &ready
}

// lookWithin bounds how long a status waits for checks when this node has come into a cluster, or out of one.
const lookWithin = 2 * time.Second

// fillHealth copies what the checks say into a status. What they have said of a membership before this one, or of none, would contradict
// the rest of it.
func (d *Daemon) fillHealth(ctx context.Context, st *adminapi.Status) {
	m := d.current()
	if d.looked.Swap(m) != m {
		ctx, cancel := context.WithTimeout(ctx, lookWithin)
		defer cancel()
		d.checks.Look(ctx)
	}
	report := d.checks.Report(health.ScopeReady)
	st.Node.Ready, st.Node.Draining = report.OK, report.Draining
	for _, f := range report.Bad() {
		level := levelOf(f.Level)
		if f.Check == health.Draining {
			switch {
			case m == nil: // what is left of the membership that has ended
				st.Node.Draining = false
				continue
			case m.svc != nil && m.svc.drain.Wanted():
				level, f.Reason, f.Hint = adminapi.LevelWarn, "this node is drained, or being drained: it takes no minions",
					"when its work is done: saltclusterctl undrain "+string(d.id)
			}
		}
		st.Node.Reasons = append(st.Node.Reasons, adminapi.Reason{Check: f.Check, Level: level, Message: f.Reason, Hint: f.Hint})
		p := adminapi.Problem{Level: level, Node: string(d.id), Message: f.Reason, Hint: f.Hint}
		if !slices.Contains(st.Problems, p) { // of a process that is starting all checks say the same
			st.Problems = append(st.Problems, p)
		}
	}
	if d.master == nil {
		return
	}
	for _, f := range d.findings() {
		level := adminapi.LevelWarn
		if f.Fatal {
			level = adminapi.LevelFail
		}
		st.Problems = append(st.Problems, adminapi.Problem{Level: level, Node: string(d.id), Message: f.Message, Hint: f.Fix})
	}
}
