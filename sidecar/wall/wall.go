package wall

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/saltwire"
)

// Policy is what the local master's configuration says about it.
type Policy struct {
	FileRecv bool     // file_recv
	OnDemand []string // on_demand_ext_pillar where the configuration names it; nil: it does not
	Syndics  bool     // order_masters
	Filters  bool     // the master itself leaves out tags of masters from lists of events (3006.12, 3007.4, 3008)
}

// Knowledge says what is known of a job.
type Knowledge uint8

// The values of Knowledge.
const (
	Uncertain Knowledge = iota
	Published
	NotPublished
)

// Config is what a Wall needs. The zero value has every rule at its default and no budgets.
type Config struct {
	Modes  map[Rule]Mode
	Policy Policy
	// Accepted says whether an id is that of a minion with an accepted key, or of a master; nil: none is.
	Accepted func(id string) bool
	// Own says whether a master_id is that of the local master; nil: it is.
	Own func(masterID string) bool
	// Job says whether a job was published whose return comes to this node; nil: nothing is known.
	Job func(jid, masterID string) Knowledge
	// Rate and Bytes are what a minion may send per second, Answers bytes of what it is answered; zero: no limit.
	Rate, Bytes, Answers int64
	Minions              int              // remembered; zero: DefaultMinions
	Now                  func() time.Time // nil: time.Now
	Registerer           prometheus.Registerer
}

// Wall checks requests. Safe for concurrent use; it holds no goroutines. A nil one checks nothing.
type Wall struct {
	cfg     Config
	modes   [rules]Mode
	policy  atomic.Pointer[Policy]
	counts  *counts
	minions *minions
}

// New returns a Wall.
func New(cfg Config) *Wall {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Accepted == nil {
		cfg.Accepted = func(string) bool { return false }
	}
	if cfg.Own == nil {
		cfg.Own = func(string) bool { return true }
	}
	if cfg.Job == nil {
		cfg.Job = func(string, string) Knowledge { return Uncertain }
	}
	w := &Wall{cfg: cfg, counts: newCounts(cfg.Registerer), minions: newMinions(cfg.Minions, cfg.Now)}
	w.Use(cfg.Policy)
	for i, r := range Rules {
		w.modes[i] = r.Default
		if m, ok := cfg.Modes[Rule(i)]; ok && !r.Fixed {
			w.modes[i] = m
		}
	}
	return w
}

// Use takes another policy: the local master has read its configuration again.
func (w *Wall) Use(p Policy) { w.policy.Store(&p) }

// Mode is how a rule is applied.
func (w *Wall) Mode(r Rule) Mode {
	if w == nil {
		return Rules[r].Default
	}
	return w.modes[r]
}

// Request is an opened request whose sender is certain.
type Request struct {
	Peek    *saltwire.Peek
	Plain   []byte  // the load
	Minion  *Minion // its sender, of Minion; nil: no budget
	Size    int     // of the request as it came
	Relayed bool    // another node has checked it, too
	Remote  netip.AddrPort
}

// Verdict is what becomes of a request.
type Verdict struct {
	Refused bool
	Reply   []byte        // refused: msgpack for the sender, to be sealed; nil: no answer, unless BadLoad
	BadLoad bool          // refused: the sender hears "bad load"
	Plain   []byte        // not refused: the load to use instead of the one that came; nil: that one
	Wait    time.Duration // not refused: how long to hold it, so that its sender stays within its budget
	Rule    Rule          // of the finding that decided
	Reason  string        // what was found; empty: nothing
}

// finding is one thing that a rule does not let through.
type finding struct {
	rule   Rule
	reason string
	then   Verdict // when it is enforced
}

// Check judges a request. Found, if it is not nil, hears of everything that is found, whether or not it is enforced.
func (w *Wall) Check(r *Request, found func(rule Rule, reason string, enforced bool)) Verdict {
	if w == nil {
		return Verdict{}
	}
	wait, f := w.checkBudget(r)
	if v := w.applyMode(r, f, found); v.Refused {
		return v
	}
	v := w.checkCommand(r, found)
	v.Wait = wait
	return v
}

// checkCommand is Check without the budget.
func (w *Wall) checkCommand(r *Request, found func(rule Rule, reason string, enforced bool)) Verdict {
	switch r.Peek.Cmd {
	case "_return":
		if v := w.applyMode(r, w.jobID(r), found); v.Refused {
			return v
		}
		if v := w.applyMode(r, w.returnID(r), found); v.Refused {
			return v
		}
		if v := w.applyMode(r, w.returnWhom(r), found); v.Refused {
			return v
		}
		if v := w.applyMode(r, w.returnStates(r), found); v.Refused {
			return v
		}
		return w.applyMode(r, w.returnJob(r), found)
	case "_syndic_return":
		if v := w.applyMode(r, w.jobID(r), found); v.Refused {
			return v
		}
		return w.applyMode(r, w.syndicReturn(r), found)
	case "pub_ret":
		return w.applyMode(r, w.jobID(r), found)
	case "_minion_event":
		return w.applyMode(r, w.checkEvent(r), found)
	case "_pillar":
		if v := w.applyMode(r, w.pillarEnv(r), found); v.Refused {
			return v
		}
		return w.applyMode(r, w.pillarExt(r), found)
	case "_register_resources":
		return w.applyMode(r, w.checkResources(r), found)
	case "_master_tops":
		return w.applyMode(r, w.checkTops(r), found)
	case "minion_publish":
		return w.applyMode(r, w.checkTimeout(r), found)
	case "_mine_get":
		return w.applyMode(r, w.mineTargets(r), found)
	case "revoke_auth":
		return w.applyMode(r, w.checkRevoke(r), found)
	case "_file_recv":
		return w.applyMode(r, w.fileRecv(r), found)
	case "_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat", "_file_list", "_file_list_emptydirs",
		"_dir_list",
		"_symlink_list", "_file_envs":
		return w.applyMode(r, w.checkFile(r), found)
	}
	return Verdict{}
}

// applyMode turns a finding into a verdict by its rule's mode.
func (w *Wall) applyMode(r *Request, f finding, found func(Rule, string, bool)) Verdict {
	if f.reason == "" {
		return Verdict{}
	}
	mode := w.modes[f.rule]
	if mode == Off || mode == Log && r.Relayed && f.rule != ReturnJobs { // the node it came to has counted it
		return Verdict{}
	}
	w.counts.addFinding(f.rule, mode, r.Peek.ID, w.cfg.Now)
	if found != nil {
		found(f.rule, f.reason, mode == Enforce)
	}
	if mode == Log {
		return Verdict{}
	}
	f.then.Rule, f.then.Reason = f.rule, f.reason
	return f.then
}

// Refused counts a refusal of sidecar/guard, by its reason.
func (w *Wall) Refused(reason, id string) {
	if w == nil {
		return
	}
	if rule, ok := byReason[reason]; ok {
		w.counts.addFinding(rule, Enforce, id, w.cfg.Now)
	}
}

// Count counts a refusal by a fixed rule that is found elsewhere.
func (w *Wall) Count(rule Rule, id string) {
	if w != nil {
		w.counts.addFinding(rule, Enforce, id, w.cfg.Now)
	}
}

// Enforces counts a finding of sidecar/guard for a rule that can be configured, unless it will come as Refused, and
// says whether to refuse.
func (w *Wall) Enforces(rule Rule, id string) bool {
	if w == nil {
		return true
	}
	switch w.modes[rule] {
	case Log:
		w.counts.addFinding(rule, Log, id, w.cfg.Now)
		return false
	case Off:
		return false
	}
	return true
}
