package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"saltclusterd/backoff"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
)

// Every node asks all others for the time of their hosts. The wall clocks are compared with one another, and never with
// the clock of the serials, which follows whichever is ahead.

const (
	// clockEvery is how often the others are asked (Daemon.clockEvery).
	clockEvery = 5 * time.Second
	// clockFresh is how old an answer may be to be judged.
	clockFresh = 4 * clockEvery
	// maxSkew is how far a clock may be off before that is a problem. Logs do not match long before; doctor says so.
	maxSkew = time.Minute
	// clockRetry is the pause while a process that has just started has no answer of some.
	clockRetry = time.Second
)

// newReference returns a reference that knows only this host's clock.
func newReference(wall func() time.Time) *hlc.Reference {
	began := time.Now()
	return hlc.NewReference(wall, func() time.Duration { return time.Since(began) })
}

// keepClocks reads the clocks of the other members until ctx ends.
func (m *member) keepClocks(ctx context.Context) {
	began := time.Now()
	for {
		missing := m.readClocks(ctx)
		known := m.cons.View().Initialized()
		if known {
			m.times.Settle()
		}
		m.logClock()
		pause := m.d.clockEvery
		if !known || missing > 0 && time.Since(began) < clockFresh {
			pause = min(pause, clockRetry)
		}
		if !backoff.Sleep(ctx, pause) {
			return
		}
	}
}

// readClocks asks every other member once, and returns how many did not answer.
func (m *member) readClocks(ctx context.Context) (missing int) {
	ctx, cancel := context.WithTimeout(ctx, statsTimeout)
	defer cancel()
	var ids []node.ID
	for _, mem := range m.cons.View().Members() {
		if mem.ID != m.d.id {
			ids = append(ids, mem.ID)
		}
	}
	m.times.Keep(ids)
	read := make([]bool, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { read[i] = m.readClock(ctx, id) })
	}
	wg.Wait()
	for _, ok := range read {
		if !ok {
			missing++
		}
	}
	return missing
}

// readClock asks one member for its time and its newest serial.
func (m *member) readClock(ctx context.Context, id node.ID) bool {
	asked := m.times.Elapsed()
	s, err := m.nodeStats(ctx, id)
	if err != nil || s.Now.IsZero() {
		return false
	}
	m.times.Note(id, s.Now, (asked+m.times.Elapsed())/2)
	if m.svc == nil {
		return true
	}
	if err := m.svc.clock.Observe(s.Serial); err != nil {
		m.log.Warn("serial of a peer refused", "node", id, "err", err)
	}
	return true
}

// clockOff returns how far this host's clock is from those of the others, when most of them agree on another time.
func (m *member) clockOff() (ahead time.Duration, off bool) {
	found, majority := m.judgeClocks()
	i := slices.IndexFunc(found, func(o hlc.Off) bool { return o.Node == m.d.id })
	if !majority || i < 0 {
		return 0, false
	}
	return found[i].Ahead, true
}

func (m *member) judgeClocks() (off []hlc.Off, majority bool) {
	return hlc.Judge(m.times.Offsets(m.d.id, clockFresh), maxSkew)
}

// logClock logs when this host's clock is found to be off, and when it is right again.
func (m *member) logClock() {
	ahead, off := m.clockOff()
	if m.clockWrong.Swap(off) == off {
		return
	}
	if off {
		m.log.Warn("this host's clock is wrong: the cluster's serials follow the other nodes' clocks", "ahead", ahead.Round(time.Second))
	} else {
		m.log.Info("this host's clock agrees with the other nodes' clocks")
	}
}

const clockHint = "timedatectl and chronyc tracking there show why: set the time and mend its synchronisation; saltclusterctl doctor compares all clocks"

// checkClock judges this host's clock.
func (d *Daemon) checkClock(context.Context) health.Result {
	m := d.current()
	if m == nil {
		return fine
	}
	off, majority := m.judgeClocks()
	if !majority {
		return health.Result{Level: health.Warn, Reason: splitClocks(m.times.Offsets(d.id, clockFresh)), Hint: clockHint}
	}
	for _, o := range off {
		if o.Node == d.id {
			return health.Result{Level: clockLevel(o.Ahead), Reason: "this host's clock is " + aheadText(o.Ahead), Hint: clockHint}
		}
	}
	return fine
}

// clockLevel is worse beyond the bound of hlc: certificates, tokens and job ids go wrong.
func clockLevel(ahead time.Duration) health.Level {
	if ahead.Abs() > hlc.MaxAhead {
		return health.Fail
	}
	return health.Warn
}

func aheadText(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " behind the cluster's"
	}
	return d.Round(time.Second).String() + " ahead of the cluster's"
}

// splitClocks says how the clocks of the cluster lie when no majority says which are right.
func splitClocks(offsets map[node.ID]time.Duration) string {
	type clock struct {
		id    node.ID
		ahead time.Duration
	}
	var all []clock
	for id, ahead := range offsets {
		all = append(all, clock{id, ahead})
	}
	slices.SortFunc(all, func(a, b clock) int { return cmp.Or(cmp.Compare(a.ahead, b.ahead), cmp.Compare(a.id, b.id)) })
	var texts []string
	for _, c := range all[1:] {
		texts = append(texts, fmt.Sprintf("%s is %s ahead", c.id, (c.ahead-all[0].ahead).Round(time.Second)))
	}
	return fmt.Sprintf("the clocks of the nodes differ, and no majority says whose is right: of %s, %s", all[0].id, strings.Join(texts, ", "))
}

// clockProblems names the other nodes whose clocks are wrong.
func (m *member) clockProblems() (out []adminapi.Problem) {
	off, majority := m.judgeClocks()
	if !majority { // the check of this node says it
		return nil
	}
	for _, o := range off {
		if o.Node != m.d.id {
			out = append(out, adminapi.Problem{
				Level: levelOf(clockLevel(o.Ahead)), Node: string(o.Node), Message: "the clock of its host is " + aheadText(o.Ahead), Hint: clockHint,
			})
		}
	}
	return out
}

// clockRead says whether the clock of a member was read lately, so that this node judges it itself.
func (m *member) clockRead(id node.ID) bool {
	_, ok := m.times.Offsets(m.d.id, clockFresh)[id]
	return ok
}
