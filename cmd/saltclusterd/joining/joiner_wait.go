package joining

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// Progress is how far the running membership of this node is.
type Progress struct {
	Running  bool // a membership runs; all else is false without one
	CaughtUp bool // with consensus
	Voter    bool

	HasMaster   bool   // it is not a witness
	Serving     bool   // minions
	WaitsFor    string // before minions are served
	PortsHeld   bool   // another process has the ports for minions
	KeysAdopted bool   // the keys in the master's directories are the cluster's

	View state.View // of what was decided
}

const (
	waitPoll = 100 * time.Millisecond
	// reportInterval is how often a client that waits gets a message.
	reportInterval = time.Second
)

// awaitVoter waits until this node votes and serves minions. It ends early if the salt-master has the ports for minions
// and is to be restarted by the operator, who would wait for this.
func (j *Joiner) awaitVoter(ctx context.Context, p admin.Progress) error {
	last, reported := "", time.Time{}
	for {
		now := j.cfg.Progress()
		step := now.missing()
		if step == "" || now.PortsHeld && len(j.cfg.Options.Salt.RestartCommand) == 0 {
			return nil
		}
		if step != last && time.Since(reported) > reportInterval {
			p("wait", step)
			last, reported = step, time.Now()
		}
		if !backoff.Sleep(ctx, waitPoll) {
			return adminapi.Errorf(adminapi.CodeTimeout, "it continues in the background; saltclusterctl status shows its progress",
				"this node is a member but not ready yet: %s", step)
		}
	}
}

// missing names what this node lacks to be a ready voter; empty: nothing.
func (p Progress) missing() string {
	switch {
	case !p.Running:
		return "opening the peer port"
	case !p.CaughtUp:
		return "catching up with the cluster"
	case p.HasMaster && !p.Serving:
		return cmp.Or(p.WaitsFor, "starting")
	case !p.Voter:
		return "caught up; waiting until the leader makes it a voter"
	}
	return ""
}

// awaitKeys waits until the keys in the founder's directories are the cluster's, and reports their numbers. The node
// serves meanwhile, so an end of ctx is not an error.
func (j *Joiner) awaitKeys(ctx context.Context, p admin.Progress) {
	reported := time.Now()
	for {
		now := j.cfg.Progress()
		if !now.HasMaster {
			return
		}
		if now.KeysAdopted {
			p("keys", "copied to the cluster: "+describeKeys(now.View))
			return
		}
		if time.Since(reported) > reportInterval {
			p("keys", "copied to the cluster so far: "+describeKeys(now.View))
			reported = time.Now()
		}
		if !backoff.Sleep(ctx, waitPoll) {
			p("keys", "the remaining keys follow; saltclusterctl keys list counts them")
			return
		}
	}
}

// describeKeys names the numbers of minion keys by state.
func describeKeys(v state.View) string {
	n := map[state.KeyState]int{}
	v.Keys(func(k state.Key) bool {
		n[k.State]++
		return true
	})
	var parts []string
	for _, s := range []state.KeyState{state.KeyAccepted, state.KeyPending, state.KeyRejected} {
		if n[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[s], s))
		}
	}
	if len(parts) == 0 {
		return "no minion keys"
	}
	return "minion keys, " + strings.Join(parts, ", ")
}
