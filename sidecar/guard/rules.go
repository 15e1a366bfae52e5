package guard

import (
	"net/netip"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// foundNotRefused is said of what a rule has found whose mode is log.
const foundNotRefused = "request would be refused"

// Minion is what is remembered of the owner of a key that is accepted for id; nil without rules.
func (g *Guard) Minion(id, pub string) *wall.Minion {
	return g.cfg.Wall.Minion(id, saltcrypt.CleanKey(pub))
}

// Answered notes how long the answer to a request of a minion was.
func (g *Guard) Answered(m *wall.Minion, size int) { g.cfg.Wall.Answered(m, size) }

// CheckRules judges a request that CheckLoad has found good, and whose sender's token was among what it looked at.
func (g *Guard) CheckRules(env saltwire.Envelope, r *wall.Request) wall.Verdict {
	if r.Peek.HasTok {
		g.cfg.Wall.Proven(r.Minion, env.Version)
	}
	v := g.cfg.Wall.Check(r, func(_ wall.Rule, reason string, enforced bool) {
		g.reportFinding(Reason(reason), enforced, r.Peek.ID, r.Peek.Cmd, r.Remote)
	})
	if r.Peek.HasTok && !v.Refused {
		g.cfg.Wall.Met(r)
	}
	return v
}

// CheckVersion refuses a sign-in or request whose payload version is older than what the owner of the key is known to
// speak.
func (g *Guard) CheckVersion(id, pub string, version int, remote netip.AddrPort) *Refusal {
	// A minion's text of its key may differ from the one accepted in line ends.
	down := g.cfg.Wall.Downgraded(id, saltcrypt.CleanKey(pub), version, func(_ wall.Rule, reason string, enforced bool) {
		g.reportFinding(Reason(reason), enforced, id, "", remote)
	})
	if !down {
		return nil
	}
	return &Refusal{Reason: ReasonDowngrade, Answer: saltwire.BadLoad()}
}

// UnknownCommand notes a sealed command that no Salt has.
func (g *Guard) UnknownCommand(id, cmd string, remote netip.AddrPort) {
	g.cfg.Wall.Count(wall.AESCommands, id)
	g.reportFinding(ReasonUnknownSealed, true, id, cmd, remote)
}

// reportFinding logs what a rule has found, and counts it when it is refused for it.
func (g *Guard) reportFinding(reason Reason, enforced bool, id, cmd string, remote netip.AddrPort) {
	if !enforced {
		g.logLimited(foundNotRefused, reason, id, cmd, remote)
		return
	}
	g.metrics.refused.WithLabelValues(string(reason)).Inc()
	g.logLimited("request refused", reason, id, cmd, remote)
}
