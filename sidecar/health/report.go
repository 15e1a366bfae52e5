package health

import (
	"fmt"
	"strings"
	"time"
)

// Finding is the newest result of one check.
type Finding struct {
	Check string
	Result
	Since time.Time // of this level; zero: never answered
	Well  time.Time // since when it does not fail; zero: it does
}

// Report is one answer.
type Report struct {
	OK       bool // nothing fails
	Draining bool
	// Maintenance says that a check fails with Result.Maintenance.
	Maintenance bool
	Well        time.Time // since when nothing fails; meaningless unless OK
	Findings    []Finding // of every check in scope, in the order of registration
}

// Bad returns the findings that are not ok.
func (r Report) Bad() []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if f.Level != OK {
			out = append(out, f)
		}
	}
	return out
}

// Draining is the name of the finding that SetDraining makes.
const Draining = "draining"

// OnlyDraining reports that nothing fails but that minions are being let go.
func (r Report) OnlyDraining() bool { return r.Draining && r.failingNames() == Draining }

// failingNames returns the names of failing checks.
func (r Report) failingNames() string {
	var names []string
	for _, f := range r.Findings {
		if f.Level == Fail {
			names = append(names, f.Check)
		}
	}
	return strings.Join(names, ", ")
}

// Report judges all checks that have any of the scopes, from their newest
// results; it runs none and never waits for one.
func (c *Checker) Report(scope Scope) Report {
	now := time.Now()
	r := Report{OK: true, Draining: c.draining.Load() && scope&^ScopeLive != 0}
	if r.Draining {
		r.Findings = append(r.Findings, Finding{
			Check: Draining,
			Result: Result{Level: Fail, Reason: "this node is handing over its minions",
				Hint: "saltclusterd is stopping or draining"},
		})
	}
	for _, k := range c.checks {
		if k.scope&scope != 0 {
			r.Findings = append(r.Findings, k.currentFinding(now, c.cfg.Timeout))
		}
	}
	if at := c.resumed.Load(); at != 0 {
		r.Well = time.Unix(0, at)
	}
	for _, f := range r.Findings {
		if f.Well.After(r.Well) {
			r.Well = f.Well
		}
		r.Maintenance = r.Maintenance || f.Level == Fail && f.Maintenance
		starting := f.Since.IsZero() && f.Check != Draining
		if f.Level == Fail && !(starting && scope == ScopeLive) { // do not restart what is only starting
			r.OK = false
		}
	}
	return r
}

// currentFinding is the last result, or a failure when the check does not come back:
// its last word may be long out of date.
func (k *check) currentFinding(now time.Time, timeout time.Duration) Finding {
	k.mu.Lock()
	defer k.mu.Unlock()
	f := Finding{Check: k.name, Result: k.last, Since: k.since, Well: k.well}
	const grace = 100 * time.Millisecond // for a check that ends because its context did
	if late := now.Sub(k.running); !k.running.IsZero() && late > timeout+grace {
		f.Result = Result{Level: Fail, Reason: fmt.Sprintf("has not answered for %s", late.Round(time.Second))}
		f.Since = k.running
		return f
	}
	if !k.known {
		f.Result = Result{Level: Fail, Reason: "has not answered yet", Hint: "saltclusterd is starting"}
	}
	return f
}
