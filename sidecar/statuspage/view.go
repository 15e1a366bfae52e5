package statuspage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// view is what the page shows.
type view struct {
	Title   string // of the window: what is wrong first
	Cluster string
	Node    string
	About   string // versions and the like of the node that answers
	At      string
	Verdict string
	Tone    string // class of the verdict: ok, warn, fail

	Problems []problem
	Facts    []fact
	Members  []member
	Ring     []slice
	Curves   []curve
	Jobs     []job
	JobsNote string
	Minions  *minions
	Roots    []rootsRow
	RootsOf  string // the newest revision
	Missing  string // nodes that did not answer

	RingSize, CurveWidth, CurveHeight float64
}

type problem struct{ Tone, Word, Node, Message, Hint string }

type fact struct{ Name, Value, Tone string }

type member struct {
	ID, Role, State, StateTone, Ready, ReadyTone, Salt, Version, Subscribers, Lag, Roots string
	Leader, Self                                                                         bool
}

type job struct {
	JID, At, Function, Target, User, Nodes string
	Minions, Returned                      int
	State, Tone                            string
}

type minions struct {
	Present, Absent, Doubt int
	Gone                   []absent
	More                   int // absent ones that are not listed
	Slow                   []slow
}

type absent struct{ ID, Heard, Node, Address string }

type slow struct {
	ID, Took, Function, Node string
	took                     time.Duration
}

type rootsRow struct{ Node, Revision, State, Tone, Files, Scan string }

// listed bounds lists of minions.
const listed = 20

// makeView says in words what there is.
func makeView(g gathering, lines []Line, now time.Time) view {
	v := view{
		At: now.UTC().Format("2006-01-02 15:04:05") + " UTC", RingSize: ringSize, CurveWidth: curveWidth,
		CurveHeight: curveHeight,
		Tone:        "fail", Verdict: "this node does not report its status",
	}
	missing := map[string]bool{}
	for _, l := range lines {
		v.Curves = append(v.Curves, curveOf(l))
	}
	v.setStatus(g.Status, now)
	if g.Ring != nil {
		v.setRing(g.Ring.Nodes)
	}
	if g.Roots != nil {
		v.setRoots(*g.Roots, now)
	}
	if g.Jobs != nil {
		v.setJobs(g.Jobs.Jobs, now)
		addMissing(missing, g.Jobs.Missing)
	}
	if g.Presence != nil {
		v.setMinions(*g.Presence, g.Protocols, now)
		addMissing(missing, g.Presence.Missing)
	}
	var silent []string
	for id := range missing {
		silent = append(silent, id)
	}
	slices.Sort(silent)
	v.Missing = strings.Join(silent, ", ")
	return v
}

func addMissing(missing map[string]bool, nodes []string) {
	for _, id := range nodes {
		missing[id] = true
	}
}

func toneOf(l adminapi.Level) string {
	if l == adminapi.LevelFail {
		return "fail"
	}
	return "warn"
}

func (v *view) setStatus(st *adminapi.Status, now time.Time) {
	if st == nil {
		v.Title = "no answer"
		return
	}
	v.Node = st.Node.ID
	v.Cluster = "no cluster"
	if st.Cluster != nil {
		v.Cluster = st.Cluster.ID
	}
	v.About = "saltclusterd " + st.Node.Version
	if st.Node.SaltVersion != "" {
		v.About += ", Salt " + st.Node.SaltVersion
	}
	if !st.Node.Started.IsZero() {
		v.About += ", up " + formatAge(now.Sub(st.Node.Started))
	}
	fails := 0
	for _, p := range st.Problems {
		word := "warning"
		if p.Level == adminapi.LevelFail {
			word = "failure"
			fails++
		}
		v.Problems = append(v.Problems, problem{toneOf(p.Level), word, p.Node, p.Message, p.Hint})
	}
	switch n := len(st.Problems); {
	case st.Removed != "":
		v.Tone, v.Verdict = "fail", st.Removed
	case st.Starting:
		v.Tone, v.Verdict = "warn", "this node is starting"
	case st.Cluster == nil:
		v.Tone, v.Verdict = "warn", "this node belongs to no cluster yet"
	case fails > 0:
		v.Tone, v.Verdict = "fail", formatPlural(n, "problem")
	case n > 0:
		v.Tone, v.Verdict = "warn", formatPlural(n, "warning")
	default:
		v.Tone, v.Verdict = "ok", "no problems"
	}
	v.Title = v.Verdict + " – " + v.Cluster
	for _, m := range st.Members {
		v.Members = append(v.Members, memberRow(m))
	}
	v.addFacts(st)
}

// addFacts are about the cluster and the node that answers.
func (v *view) addFacts(st *adminapi.Status) {
	add := func(name, value, tone string) { v.Facts = append(v.Facts, fact{name, value, tone}) }
	if c := st.Cluster; c != nil {
		leader, t := cmp.Or(c.Leader, "none"), ""
		if c.Leader == "" {
			t = "fail"
		}
		add("leader", leader, t)
		q := fmt.Sprintf("%d of %d voters, %d needed", c.Quorum.Alive, c.Quorum.Voters, c.Quorum.Need)
		if t = ""; !c.Quorum.OK {
			q, t = q+": lost", "fail"
		}
		add("quorum", q, t)
		add("AES epoch", fmt.Sprint(c.Epoch), "")
	}
	n := st.Node
	switch {
	case n.Draining:
		add("ready", "no: draining", "warn")
	case n.Ready:
		add("ready", "yes", "ok")
	default:
		add("ready", "no", "fail")
	}
	for _, e := range n.Edges {
		text := formatPlural(e.Connections, "connection")
		if e.InFlight > 0 {
			text += fmt.Sprintf(", %d in flight", e.InFlight)
		}
		add(map[string]string{"pub": "4505", "req": "4506"}[e.Name], text, "")
	}
	if n.Upstream.Address != "" {
		text, t := "up", "ok"
		if !n.Upstream.Up {
			text, t = "down", "fail"
		}
		if n.Upstream.Queued > 0 {
			text += fmt.Sprintf(", %d waiting", n.Upstream.Queued)
		}
		add("salt-master", text, t)
	}
	if n.Returns == nil {
		return
	}
	for _, j := range n.Returns.Journals {
		waits := uint64(0)
		for _, w := range j.Waiting {
			waits = max(waits, w.Records)
		}
		if t := ""; waits > 0 || j.State != "ok" {
			if j.State != "ok" {
				t = "warn"
			}
			add("returns, "+j.Name, fmt.Sprintf("%d waiting, %s", waits, j.State), t)
		}
	}
}

func memberRow(m adminapi.Member) member {
	row := member{
		ID: m.ID, Role: string(m.Role), State: string(m.State), Salt: m.SaltVersion, Version: m.Version, Leader: m.Leader,
		Self:        m.Self,
		Subscribers: formatNumber(m.Subscribers), Lag: formatNumber(m.Lag), StateTone: "fail", ReadyTone: "fail",
	}
	if m.State == adminapi.StateAlive {
		row.StateTone = "ok"
	}
	switch syncing := adminapi.SyncText(m.Sync); {
	case m.Draining:
		row.Ready, row.ReadyTone = "draining", "warn"
	case m.Ready == nil:
		row.Ready, row.ReadyTone = "–", ""
	case *m.Ready:
		row.Ready, row.ReadyTone = "yes", "ok"
	case syncing != "":
		row.Ready, row.ReadyTone = "no: syncing "+syncing, "warn"
	case len(m.Reasons) > 0:
		row.Ready = "no: " + strings.Join(m.Reasons, ", ")
	default:
		row.Ready = "no"
	}
	return row
}

func formatNumber[T int | uint64](n *T) string {
	if n == nil {
		return "–"
	}
	return fmt.Sprint(*n)
}

func (v *view) setRing(nodes []adminapi.RingNode) {
	var ids []string
	var shares []float64
	for _, n := range nodes {
		ids, shares = append(ids, n.ID), append(shares, n.Share)
	}
	v.Ring = ringSlices(ids, shares)
	for i, n := range nodes {
		switch {
		case n.Draining:
			v.Ring[i].Note = "draining"
		case n.State != adminapi.StateAlive:
			v.Ring[i].Note = string(n.State)
		case n.Share == 0:
			v.Ring[i].Note = "accepts no work now"
		}
	}
}

func (v *view) setRoots(r adminapi.RootsStatus, now time.Time) {
	if r.Head != nil {
		v.RootsOf = fmt.Sprintf("revision %d, %s, by %s %s ago", r.Head.Number, formatPlural(r.Head.Files, "file"), r.Head.Author,
			formatAge(now.Sub(r.Head.Time)))
	}
	for _, n := range r.Nodes {
		row := rootsRow{Node: n.Node, Revision: fmt.Sprint(n.Revision), State: "current", Tone: "ok"}
		if !n.LastScan.IsZero() {
			row.Scan = formatAge(now.Sub(n.LastScan)) + " ago"
		}
		files := 0
		for _, s := range n.Slots {
			files += s.Files
		}
		row.Files = fmt.Sprint(files)
		switch {
		case n.Error != "":
			row.State, row.Tone, row.Revision, row.Files = n.Error, "fail", "–", "–"
		case n.Off != "":
			row.State, row.Tone = "off: "+n.Off, ""
		case len(n.Problems) > 0:
			row.State, row.Tone = strings.Join(n.Problems, "; "), "warn"
		case n.Phase != "":
			row.State, row.Tone = n.Phase, "warn"
		case n.Edited:
			row.State, row.Tone = "edited here", "warn"
		case !n.Current:
			row.State, row.Tone = "behind", "warn"
		}
		if n.Conflicts > 0 {
			row.State, row.Tone = row.State+", "+formatPlural(n.Conflicts, "conflict"), "warn"
		}
		v.Roots = append(v.Roots, row)
		for i := range v.Members {
			if v.Members[i].ID == n.Node {
				v.Members[i].Roots = row.Revision
			}
		}
	}
}

// jobTime is the layout of what a job id begins with, UTC.
const jobTime = "20060102150405"

// publishedAt is when a job was, as far as its id tells.
func publishedAt(jid string) (time.Time, bool) {
	if len(jid) < len(jobTime) {
		return time.Time{}, false
	}
	t, err := time.Parse(jobTime, jid[:len(jobTime)])
	return t, err == nil
}

// jobWaits is for how long a job without all its returns is at work, as far as one can tell.
const jobWaits = 10 * time.Minute

func (v *view) setJobs(list []adminapi.JobRow, now time.Time) {
	waiting := 0
	for _, j := range list {
		row := job{
			JID: j.JID, Function: j.Function, Target: j.Target, User: j.User, Nodes: strings.Join(j.Nodes, ", "),
			Minions: j.Minions, Returned: j.Returned, State: "complete", Tone: "ok",
		}
		at, known := publishedAt(j.JID)
		if known {
			row.At = formatAge(now.Sub(at)) + " ago"
		}
		switch {
		case j.Minions == 0:
			row.State, row.Tone = "no minions", ""
		case j.Returned >= j.Minions:
		case known && now.Sub(at) < jobWaits:
			row.State, row.Tone = fmt.Sprintf("waiting for %d", j.Minions-j.Returned), "warn"
			waiting++
		default:
			row.State, row.Tone = fmt.Sprintf("%d missing", j.Minions-j.Returned), "fail"
		}
		v.Jobs = append(v.Jobs, row)
	}
	v.JobsNote = "no job waits for returns"
	if waiting > 0 {
		v.JobsNote = fmt.Sprintf("%d waiting for returns", waiting)
	}
}

// slowAfter is the time from which a return is shown as slow.
const slowAfter = 5 * time.Second

func (v *view) setMinions(p adminapi.Presence, heard *adminapi.Protocols, now time.Time) {
	m := &minions{Present: len(p.Present), Absent: len(p.Absent)}
	for _, one := range p.Present {
		if one.Doubt {
			m.Doubt++
		}
	}
	gone := slices.Clone(p.Absent)
	// who went last, first
	slices.SortStableFunc(gone, func(a, b adminapi.PresentMinion) int { return b.Seen.Compare(a.Seen) })
	for _, one := range gone[:min(len(gone), listed)] {
		row := absent{ID: one.ID, Node: one.Node, Address: one.Address, Heard: "not yet"}
		if !one.Seen.IsZero() {
			row.Heard = formatAge(now.Sub(one.Seen)) + " ago"
		}
		m.Gone = append(m.Gone, row)
	}
	m.More = len(gone) - len(m.Gone)
	if heard != nil {
		m.Slow = slowestMinions(heard.Minions, now)
	}
	v.Minions = m
}

// slowestMinions are the minions whose latest return took longest, of those of the last day.
func slowestMinions(list []adminapi.MinionProtocol, now time.Time) (out []slow) {
	for _, m := range list {
		if m.Returned == nil || now.Sub(m.Returned.At) > 24*time.Hour {
			continue
		}
		at, ok := publishedAt(m.Returned.JID)
		if took := m.Returned.At.Sub(at); ok && took >= slowAfter {
			out = append(out, slow{ID: m.ID, Took: formatAge(took), Function: m.Returned.Function, Node: m.Node, took: took})
		}
	}
	slices.SortFunc(out, func(a, b slow) int { return cmp.Or(cmp.Compare(b.took, a.took), cmp.Compare(a.ID, b.ID)) })
	return out[:min(len(out), listed/2)]
}

// formatAge is a duration in two units at most.
func formatAge(d time.Duration) string {
	switch d = max(0, d); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
}

func formatPlural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
