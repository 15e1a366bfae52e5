package wall

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/metric"
)

// counts is what the rules have found since the program was started.
type counts struct {
	n    [rules][2]atomic.Uint64 // by Mode: Enforce, Log
	sums *prometheus.CounterVec

	mu   sync.Mutex
	last [rules]Last
}

// Last is the latest thing that a rule has found.
type Last struct {
	At time.Time
	ID string // of its sender, as far as that was told
}

// maxShownID bounds what is kept of an id that was not checked.
const maxShownID = 255

// newCounts returns counters, which are not exported as metrics when reg is nil.
func newCounts(reg prometheus.Registerer) *counts {
	c := &counts{sums: metric.NewSet(reg, "wall").NewCounterVec("findings_total",
		"Requests in which a rule found a violation, by rule and outcome.", "rule", "action")}
	for _, r := range Rules {
		c.sums.WithLabelValues(r.Name, actions[Enforce])
		if !r.Fixed {
			c.sums.WithLabelValues(r.Name, actions[Log])
		}
	}
	return c
}

var actions = [...]string{Enforce: "refused", Log: "logged"}

func (c *counts) addFinding(r Rule, mode Mode, id string, now func() time.Time) {
	c.n[r][mode].Add(1)
	c.sums.WithLabelValues(Rules[r].Name, actions[mode]).Inc()
	at := now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[r] = Last{at, id[:min(len(id), maxShownID)]}
}

// Found is what a rule has found since the program was started.
type Found struct {
	Rule    Rule
	Mode    Mode
	Refused uint64 // or cut
	Logged  uint64
	Last    Last
}

// Found lists all rules and what they have found.
func (w *Wall) Found() []Found {
	out := make([]Found, 0, rules)
	w.counts.mu.Lock()
	defer w.counts.mu.Unlock()
	for r := range rules {
		out = append(out, Found{
			Rule: r, Mode: w.modes[r], Last: w.counts.last[r],
			Refused: w.counts.n[r][Enforce].Load(), Logged: w.counts.n[r][Log].Load(),
		})
	}
	return out
}
