package history

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// line of a printed history.
type line struct {
	at     time.Time
	text   string
	number int
	minion string
}

// since writes a time as seconds after start.
func since(start, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprintf("%.2fs", t.Sub(start).Seconds())
}

// lines are all that happened, in order.
func (h *History) lines() []line {
	var all []line
	add := func(at time.Time, number int, minion, format string, args ...any) {
		all = append(all, line{at, fmt.Sprintf(format, args...), number, minion})
	}
	for _, f := range h.Faults {
		add(f.Start, 0, "", "FAULT %s on %v, cut %v", f.Kind, f.Nodes, f.Cuts)
		if !f.End.IsZero() {
			add(f.End, 0, "", "OVER  %s on %v, cut %v", f.Kind, f.Nodes, f.Cuts)
		}
	}
	for _, n := range h.Notes {
		add(n.At, 0, "", "NOTE  %s", n.Text)
	}
	for _, p := range h.Publications {
		add(p.Start, p.Number, "", "PUB   %d by %s: %s after %s, jid %s %s", p.Number, p.Node, p.Outcome,
			p.End.Sub(p.Start).Round(time.Millisecond), p.Jid, p.Error)
	}
	for _, r := range h.Runs {
		add(r.At, r.Number, r.Minion, "RUN   %d on %s, jid %s", r.Number, r.Minion, r.Jid)
	}
	for _, r := range h.Returns {
		add(r.At, r.Number, r.Minion, "RET   %d from %s to %s, jid %s, %d tries, acknowledged %s",
			r.Number, r.Minion, r.Node, r.Jid, r.Tries, since(h.Start, r.Acked))
	}
	for _, p := range h.Presences {
		add(p.From, 0, p.Minion, "SUB   %s to %s until %s, ended %s: %s", p.Minion, anyNode(p.Node), since(h.Start, p.To),
			since(h.Start, p.Ended), p.Why)
	}
	for _, k := range h.KeyOps {
		add(k.Start, 0, k.ID, "KEY   %s %s on %s: %s after %s %s", k.Verb, k.ID, k.Node, k.Outcome, k.End.Sub(k.Start),
			k.Error)
	}
	for _, p := range h.Probes {
		add(p.At, 0, p.ID, "PROBE %s of %s on %s: worked %t, %s", p.What, p.ID, p.Node, p.Worked, p.Detail)
	}
	for _, s := range h.Sents {
		add(s.At, 0, s.Minion, "EVENT %s from %s, acknowledged %s", s.Tag, s.Minion, since(h.Start, s.Acked))
	}
	for _, e := range h.Heards {
		add(e.At, 0, "", "HEARD %s on %s", e.Tag, e.Node)
	}
	slices.SortStableFunc(all, func(a, b line) int { return a.at.Compare(b.at) })
	return all
}

// Print writes the history. With violations only what belongs to them (and all faults, notes and decisions about keys)
// is written; without, everything.
func (h *History) Print(w io.Writer, violations ...Violation) {
	wanted := func(l line) bool {
		if len(violations) == 0 || (l.number == 0 && l.minion == "") {
			return true
		}
		return slices.ContainsFunc(violations, func(v Violation) bool {
			return v.Number == l.number && (l.minion == "" || v.Minion == l.minion) || l.number == 0 && v.Minion == l.minion
		})
	}
	fmt.Fprintf(w, "seed %d, nodes %v, from %s\n", h.Seed, h.Nodes, h.Start.Format(time.RFC3339))
	for _, l := range h.lines() {
		if wanted(l) {
			fmt.Fprintf(w, "%9s  %s\n", since(h.Start, l.at), l.text)
		}
	}
	views := slices.Clone(h.Views)
	slices.SortFunc(views, func(a, b View) int { return cmp.Compare(a.Node, b.Node) })
	for _, v := range views {
		fmt.Fprintf(w, "%9s  %s: cluster %s, identity %.19s, AES %.12s (epoch %d), leader %s, members %v, keys %v\n",
			"end", v.Node, v.UUID, v.Identity, v.AES, v.Epoch, v.Leader, v.Members, v.Keys)
	}
}

// Summary is one line of numbers.
func (h *History) Summary() string {
	ok, acked := 0, 0
	for _, p := range h.Publications {
		if p.Outcome == OK {
			ok++
		}
	}
	for _, r := range h.Returns {
		if !r.Acked.IsZero() {
			acked++
		}
	}
	owed, missed := Owed(h, DefaultOptions())
	return fmt.Sprintf("%d faults; %d publications (%d confirmed), %d runs, %d of %d owed to minions behind the load balancer missed, %d returns (%d acknowledged), %d in job caches; %d key decisions, %d probes; %d events sent, %d heard",
		len(h.Faults), len(h.Publications), ok, len(h.Runs), missed, owed, len(h.Returns), acked, len(h.Cache),
		len(h.KeyOps), len(h.Probes), len(h.Sents), len(h.Heards))
}

// WriteJSON writes the history for another program.
func (h *History) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(h)
}
