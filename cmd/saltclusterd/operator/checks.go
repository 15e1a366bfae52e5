package operator

import (
	"saltclusterd/sidecar/health"
)

var fine = health.Result{Level: health.OK}

// Consensus is the state of consensus that its health check judges.
type Consensus struct {
	TakenOver  bool // this process has taken over from another one a moment ago
	Detached   bool // this node was removed
	HasQuorum  bool
	CaughtUp   bool
	LogError   error // why its log cannot be written; nil: it can
	StateDir   string
	Rejoin     string        // what an operator of a removed node can do
	QuorumHint func() string // what to do about a lost majority
}

// CheckConsensus judges the membership's part in consensus.
func CheckConsensus(c Consensus) health.Result {
	switch {
	case c.TakenOver:
		return health.Result{
			Level: health.Warn, Reason: "this process has just taken over and is finding the cluster", Hint: "it takes a second",
		}
	case c.Detached:
		return health.Result{Level: health.Fail, Reason: "this node was removed from the cluster", Hint: c.Rejoin}
	case c.LogError != nil && !(c.HasQuorum && c.CaughtUp):
		return health.Result{
			Level: health.Fail, Reason: "this node cannot store decisions of the cluster: " + c.LogError.Error(),
			Hint: "make room in or repair the disk of " + c.StateDir + "; df -h " + c.StateDir + ", dmesg",
		}
	case !c.HasQuorum:
		return health.Result{
			Level: health.Fail, Reason: "no majority of the cluster can be reached: key decisions wait", Hint: c.QuorumHint(),
		}
	case !c.CaughtUp:
		return health.Result{
			Level: health.Fail, Reason: "this node is catching up with the cluster", Hint: "it takes seconds",
		}
	}
	return fine
}

// CheckEdges judges the ports for minions that are not open. held: everything is ready, but another process has them.
func CheckEdges(waitsFor string, held bool) health.Result {
	hint := "if it takes longer than some seconds, the log says why"
	if held {
		hint = "systemctl restart salt-master, if it was not restarted since setup; " +
			"otherwise ss -ltnp 'sport = :4505 or sport = :4506' names it"
	}
	return health.Result{Level: health.Fail, Reason: "4505 and 4506 are not open: " + waitsFor, Hint: hint}
}

// CheckMaster judges the problem of the local salt-master. It fails only if no other node can serve in its place.
func CheckMaster(problem string, othersServe bool) health.Result {
	switch {
	case problem == "":
		return fine
	case othersServe:
		return health.Result{
			Level: health.Warn, Reason: "the local salt-master does not serve; the others' do", Hint: problem,
		}
	}
	return health.Result{Level: health.Fail, Reason: "no salt-master of the cluster answers", Hint: problem}
}
