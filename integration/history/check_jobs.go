package history

import (
	"slices"
	"strings"
	"time"
)

// runKey is one run of one job at one minion.
type runKey struct{ jid, minion string }

// acked: what a minion saw acknowledged is in the cache of the node that published, once, whole. Which node that is
// follows from the publication; when its command died before it told us the jid, any one node will do.
func (j *judge) acked() {
	if j.o.Unfinished {
		return
	}
	where := map[runKey][]Cached{}
	for _, c := range j.Cache {
		k := runKey{c.Jid, c.Minion}
		where[k] = append(where[k], c)
	}
	for _, r := range j.Returns {
		if r.Acked.IsZero() {
			continue
		}
		v := Violation{Number: r.Number, Minion: r.Minion}
		node, known := j.publisher[r.Jid]
		copies := where[runKey{r.Jid, r.Minion}]
		if known {
			copies = slices.DeleteFunc(slices.Clone(copies), func(c Cached) bool { return c.Node != node })
		} else {
			node = "any node"
		}
		switch {
		case len(copies) == 0:
			j.blame(v, RuleAcked, "return of %s about number %d (jid %s), acknowledged at %s, is not in the job cache of %s",
				r.Minion, r.Number, r.Jid, j.clock(r.Acked), node)
		case known && len(copies) > 1:
			j.blame(v, RuleAcked, "return of %s about number %d (jid %s) is %d times in the job cache of %s",
				r.Minion, r.Number, r.Jid, len(copies), node)
		case copies[0].Error != "":
			j.blame(v, RuleAcked, "return of %s about number %d (jid %s) cannot be read from the job cache of %s: %s",
				r.Minion, r.Number, r.Jid, node, copies[0].Error)
		case copies[0].Number != r.Number:
			j.blame(v, RuleAcked, "return of %s about number %d (jid %s) is %d in the job cache of %s",
				r.Minion, r.Number, r.Jid, copies[0].Number, node)
		}
	}
}

func (j *judge) atMostOnce() {
	times := map[runKey][]Run{}
	for _, r := range j.Runs {
		k := runKey{r.Jid, r.Minion}
		times[k] = append(times[k], r)
	}
	for _, r := range j.Runs {
		k := runKey{r.Jid, r.Minion}
		if all := times[k]; len(all) > 1 {
			delete(times, k)
			j.blame(Violation{Number: r.Number, Minion: r.Minion}, RuleAtMostOnce, "%s ran number %d (jid %s) %d times, at %s",
				r.Minion, r.Number, r.Jid, len(all), j.clocks(all))
		}
	}
}

// delivered: a publication that its master confirmed reaches every minion that was connected before, during and after
// it, on a node that was whole for as long. One that was behind the load balancer all the time gets it a little later,
// whatever was broken that minions outlast.
func (j *judge) delivered() {
	j.eachOwed(func(p Publication, id, node string, ran bool) {
		if !ran {
			j.blame(Violation{Number: p.Number, Minion: id}, RuleDelivered,
				"%s, connected to %s, did not run number %d (jid %s), published by %s at %s, and nothing that was broken excuses it",
				id, anyNode(node), p.Number, p.Jid, p.Node, j.clock(p.Start))
		}
	})
}

// Owed is how many publications × minions behind the load balancer were owed, and how many of them did not run.
func Owed(h *History, o Options) (owed, missed int) {
	newJudge(h, o).eachOwed(func(_ Publication, _, node string, ran bool) {
		if node != "" {
			return
		}
		owed++
		if !ran {
			missed++
		}
	})
	return owed, missed
}

// eachOwed tells of each confirmed publication and each minion that it is owed to, by way of which node, and whether it
// ran.
func (j *judge) eachOwed(do func(p Publication, minion, node string, ran bool)) {
	ran := map[runKey]bool{}
	for _, r := range j.Runs {
		ran[runKey{r.Jid, r.Minion}] = true
	}
	for _, p := range j.Publications {
		if p.Outcome != OK || p.Jid == "" {
			continue
		}
		for _, id := range sorted(j.present) {
			if node, owed := j.owed(p, id); owed {
				do(p, id, node, ran[runKey{p.Jid, id}])
			}
		}
	}
}

func (j *judge) owed(p Publication, minion string) (node string, owed bool) {
	from, to := p.Start.Add(-j.o.Slack), p.End.Add(j.o.Slack)
	for _, at := range j.present[minion] {
		if at.From.After(from) || at.To.Before(to) {
			continue
		}
		late := p.End.Add(j.o.Late)
		switch {
		case !at.Roams && !j.touched(from, to, p.Node, at.Node):
			return at.Node, true
		case at.Roams && !at.To.Before(late) && !j.spoiled(from, to, late, p.Node):
			return at.Node, true
		}
	}
	return "", false
}

// answered: the acknowledgement comes when both the node that the minion asked and the one that published were whole.
func (j *judge) answered() {
	for _, r := range j.Returns {
		node, known := j.publisher[r.Jid]
		if !r.Acked.IsZero() || !known || j.touched(r.At.Add(-j.o.Slack), r.At.Add(j.o.Answer), r.Node, node) {
			continue
		}
		j.blame(Violation{Number: r.Number, Minion: r.Minion}, RuleAnswered,
			"return of %s about number %d (jid %s), sent %d times to %s since %s, was not acknowledged, and nothing was broken",
			r.Minion, r.Number, r.Jid, r.Tries, r.Node, j.clock(r.At))
	}
}

func anyNode(node string) string {
	if node == "" {
		return "the load balancer"
	}
	return node
}

// clock writes a time as seconds since the history began.
func (j *judge) clock(t time.Time) string { return since(j.Start, t) }

func (j *judge) clocks(all []Run) string {
	var b []string
	for _, r := range all {
		b = append(b, j.clock(r.At))
	}
	return strings.Join(b, ", ")
}
