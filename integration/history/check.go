package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Rules that Check judges by.
const (
	RuleAcked      = "an acknowledged return is in the publisher's job cache, once"
	RuleAtMostOnce = "no minion runs a publication twice"
	RuleDelivered  = "a connected minion that no fault touched runs every publication"
	RuleAnswered   = "a return that no fault touched is acknowledged"
	RuleDeleted    = "a deleted key works nowhere"
	RuleKeys       = "keys are the same on all nodes, and as they were decided"
	RuleOneCluster = "there is one cluster with one identity, one AES key, one leader, one list of members"
	RuleEventOnce  = "no event is handled twice"
	RuleEventLost  = "an acknowledged event that no fault touched is handled"
	RuleRecovered  = "a cluster recovers on its own from every fault"
)

// Violation is something that must not be.
type Violation struct {
	Rule   string
	Detail string
	Number int    // of the publication; 0: none
	Minion string // empty: none
}

func (v Violation) String() string { return v.Rule + ": " + v.Detail }

// Options of Check.
type Options struct {
	// Slack is how long before and after a publication its minion must have been connected, and its nodes untouched, for
	// the publication to be owed to the minion.
	Slack time.Duration
	// Late is how much later a job may come to a minion that was behind a load balancer all the time, when its connection
	// broke.
	Late time.Duration
	// Answer is how long a return may take when nothing is broken.
	Answer time.Duration
	// Unfinished histories end before job caches were read.
	Unfinished bool
}

// DefaultOptions suit two slow cores.
func DefaultOptions() Options {
	return Options{Slack: 3 * time.Second, Late: 45 * time.Second, Answer: 20 * time.Second}
}

// Check judges a history.
func Check(h *History, o Options) []Violation {
	j := newJudge(h, o)
	for _, rule := range []func(){
		j.acked, j.atMostOnce, j.delivered, j.answered, j.deleted, j.keys, j.oneCluster, j.events, j.recovered,
	} {
		rule()
	}
	return j.found
}

// judge holds the history by the ways it is looked at.
type judge struct {
	*History
	o         Options
	found     []Violation
	publisher map[string]string // jid -> node
	present   map[string][]Presence
}

func newJudge(h *History, o Options) *judge {
	j := &judge{History: h, o: o, publisher: map[string]string{}, present: map[string][]Presence{}}
	for _, p := range h.Publications {
		if p.Jid != "" {
			j.publisher[p.Jid] = p.Node
		}
	}
	for _, p := range h.Presences {
		j.present[p.Minion] = append(j.present[p.Minion], p)
	}
	return j
}

func (j *judge) blame(v Violation, rule, format string, args ...any) {
	v.Rule, v.Detail = rule, fmt.Sprintf(format, args...)
	j.found = append(j.found, v)
}

// touched tells whether a fault between from and to may have kept something on the way from one node to another. An
// empty node is any node.
func (j *judge) touched(from, to time.Time, a, b string) bool {
	return slices.ContainsFunc(j.Faults, func(f Fault) bool {
		over := !f.End.IsZero() && f.End.Before(from)
		return !over && !f.Start.After(to) && f.touches(a, b)
	})
}

// spoiled tells whether something may have kept what node published between from and to from minions behind the load
// balancer, which have until late to get it.
func (j *judge) spoiled(from, to, late time.Time, node string) bool {
	return slices.ContainsFunc(j.Faults, func(f Fault) bool {
		after := from
		if !f.Outlasted { // minions are on their way back for as long
			after = from.Add(-j.o.Late)
		}
		if !f.End.IsZero() && f.End.Before(after) {
			return false
		}
		return !f.Outlasted && !f.Start.After(late) || !f.Caught && slices.Contains(f.Nodes, node) && !f.Start.After(to)
	})
}

func (f Fault) touches(a, b string) bool {
	if a == "" || b == "" || slices.Contains(f.Nodes, a) || slices.Contains(f.Nodes, b) {
		return true
	}
	return slices.Contains(f.Cuts, [2]string{a, b}) || slices.Contains(f.Cuts, [2]string{b, a})
}

// sorted are the keys of a map in order, so that the same history reads the same.
func sorted[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
