package router

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/saltwire"
)

// view is m1 (here, 3006), m2 (3007) and m3 (3008). The ring gives "web" and "db" to m3, "mail" to m2.
func caching(i int) func(*View) { return func(v *View) { v.Nodes[i].CachesPillars = true } }

func view(change ...func(*View)) View {
	jobs := NewJobs(10)
	jobs.Record("20260101000000000002", "m2", 0)
	jobs.Record("20260101000000000001", "m1", 0)
	v := View{Self: "m1", Jobs: jobs, Nodes: []Node{
		{ID: "m1", Weight: 100, Alive: true, MasterUp: true, Major: 3006},
		{ID: "m2", Weight: 100, Alive: true, MasterUp: true, Major: 3007, MasterID: "master-two"},
		{ID: "m3", Weight: 100, Alive: true, MasterUp: true, Major: 3008},
	}}
	for _, c := range change {
		c(&v)
	}
	return v
}

func masterDown(i int) func(*View) { return func(v *View) { v.Nodes[i].MasterUp = false } }
func gone(i int) func(*View) {
	return func(v *View) { v.Nodes[i].Alive, v.Nodes[i].MasterUp = false, false }
}
func removed(i int) func(*View) {
	return func(v *View) { v.Nodes = slices.Delete(v.Nodes, i, i+1) }
}
func native(i int) func(*View) { return func(v *View) { v.Nodes[i].TakesReturns = true } }
func mines(is ...int) func(*View) {
	return func(v *View) {
		for _, i := range is {
			v.Nodes[i].TakesMines = true
		}
	}
}
func draining(i int) func(*View) { return func(v *View) { v.Nodes[i].Draining = true } }

// published says that nodes have published the same job.
func published(jid string, by ...node.ID) func(*View) {
	return func(v *View) {
		for _, id := range by {
			v.Jobs.(*Jobs).Record(jid, id, 1)
		}
	}
}
func load(loads ...int) func(*View) {
	return func(v *View) {
		for i, l := range loads {
			v.Nodes[i].Load = l
		}
	}
}
func relaying(id node.ID, n int) func(*View) {
	return func(v *View) {
		v.Relaying = func(to node.ID) int {
			if to == id {
				return n
			}
			return 0
		}
	}
}
func major(n int) func(*View) {
	return func(v *View) {
		for i := range v.Nodes {
			v.Nodes[i].Major = n
		}
	}
}

// pushers says that "web", "db" and "mail" have pushed files.
func pushers(v *View) {
	v.Pusher = func(path string) string {
		id, _, _ := strings.Cut(path, "/")
		if slices.Contains([]string{"web", "db", "mail"}, id) {
			return id
		}
		return ""
	}
}

// pushed asks, as web, for a path.
func pushed(cmd, path string) saltwire.Peek {
	return saltwire.Peek{Cmd: cmd, ID: "web", Raw: saltwire.Raw{Path: msgpackText(path)}}
}

func msgpackText(s string) saltwire.Value { return append(saltwire.Value{0xd9, byte(len(s))}, s...) }

// text writes a decision as "kind node +others copies=…".
func text(d Decision) string {
	s := d.Kind.String()
	if d.Node != "" {
		s += " " + string(d.Node)
	}
	for _, o := range d.Others {
		s += " +" + string(o)
	}
	for _, c := range d.Copies {
		s += " &" + string(c)
	}
	if d.Reply != nil {
		s += fmt.Sprintf(" %x", d.Reply)
	}
	for _, a := range d.Also {
		s += " or " + string(a)
	}
	if d.Asks != "" {
		s += " asks " + string(d.Asks)
	}
	return s
}

func TestDecide(t *testing.T) {
	type peek = saltwire.Peek
	const jid1, jid2, jidX = "20260101000000000001", "20260101000000000002", "20990101000000000000"
	for _, c := range []struct {
		name string
		p    peek
		v    View
		want string
	}{
		{"file", peek{Cmd: "_serve_file", ID: "web"}, view(), "local +m3 +m2"},
		{"file, master down", peek{Cmd: "_serve_file", ID: "web"}, view(masterDown(0)), "node m3 +m2"},
		{"file, all down", peek{Cmd: "_serve_file", ID: "web"}, view(masterDown(0), gone(1), masterDown(2)), "refuse"},
		{"file, master down, the ring's first is busy", peek{Cmd: "_serve_file", ID: "web"},
			view(masterDown(0), load(0, 0, 64)), "node m2 +m3"},
		{"file, master down, hardly a difference", peek{Cmd: "_serve_file", ID: "web"},
			view(masterDown(0), load(0, 0, loadStep-1)), "node m3 +m2"},
		{"file, master down, we keep one busy", peek{Cmd: "_serve_file", ID: "web"}, view(masterDown(0), relaying("m3", 9)),
			"node m2 +m3"},
		{"file, master down, the idle one is draining", peek{Cmd: "_serve_file", ID: "web"},
			view(masterDown(0), load(0, 0, 64), draining(1)), "node m3 +m2"},
		{"file, own master is busy", peek{Cmd: "_serve_file", ID: "web"}, view(load(64, 0, 8)), "local +m2 +m3"},
		{"file that a minion has pushed", pushed("_serve_file", "mail/etc/hosts"), view(pushers), "node m2 +m1 +m3"},
		{"where a minion's pushed file is", pushed("_file_find", "mail/etc/hosts"), view(pushers), "node m2 +m1 +m3"},
		{"its hash", pushed("_file_hash", "web/etc/hosts"), view(pushers, gone(2)), "local +m2"},
		{"file of no minion", pushed("_serve_file", "top.sls"), view(pushers), "local +m3 +m2"},
		{"lists are each master's own", pushed("_file_list", "mail/etc/hosts"), view(pushers), "local +m3 +m2"},
		{"pushed files are not served", pushed("_serve_file", "mail/etc/hosts"), view(), "local +m3 +m2"},
		{"pillar", peek{Cmd: "_pillar", ID: "db"}, view(gone(1)), "local +m3"},
		{"pillar that masters cache", peek{Cmd: "_pillar", ID: "web"}, view(caching(1)), "node m3 +m1 +m2"},
		{"pillar that masters cache, owner down", peek{Cmd: "_pillar", ID: "web"}, view(caching(1), masterDown(2)),
			"local +m2"},
		{"pillar that a node which is gone has cached", peek{Cmd: "_pillar", ID: "web"}, view(caching(1), gone(1)),
			"local +m3"},

		{"return by master_id", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "m3"}, view(), "node m3 +m2 +m1"},
		{"return by configured master_id", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "master-two"}, view(),
			"node m2 +m1 +m3"},
		{"return to this node", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "m1"}, view(), "local +m2 +m3"},
		{"return, unknown master_id", peek{Cmd: "_return", ID: "web", JID: jid2, MasterID: "else"}, view(),
			"node m2 +m3 +m1"},
		{"return by job table", peek{Cmd: "_return", ID: "web", JID: jid1}, view(), "local +m3 +m2"},
		{"return, publisher gone", peek{Cmd: "_return", ID: "web", JID: jid2, MasterID: "master-two"}, view(gone(1)),
			"keep m2 +m3 +m1"},
		{"return, publisher is no member", peek{Cmd: "_return", ID: "web", JID: jid2, MasterID: "master-two"},
			view(removed(1)), "node m3 +m1"},
		{"return, publisher gone, by job table", peek{Cmd: "_return", ID: "web", JID: jid2}, view(gone(1)),
			"keep m2 +m3 +m1"},
		{"return of a job of several", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "m3"},
			view(published(jidX, "master-two", "m2", "m3")), "node m3 +m2 +m1 or m2"},
		{"return of a job of several, its publisher gone", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "m3"},
			view(published(jidX, "m2", "m3", "m1"), gone(2)), "node m2 +m1 or m1"},
		{"return of a job of several, the publisher's master down", peek{Cmd: "_return", ID: "web", JID: jidX, MasterID: "m3"},
			view(published(jidX, "m1", "m3"), masterDown(2)), "local +m2"},
		{"return of a job of several, all gone", peek{Cmd: "_return", ID: "web", JID: jidX},
			view(published(jidX, "m2", "m3"), gone(2), gone(1)), "keep m2 +m1"},
		{"return, no master up", peek{Cmd: "_return", ID: "web", JID: "req"},
			view(masterDown(0), masterDown(1), masterDown(2), native(0), native(1)), "local +m2"},
		{"return, publisher's master down", peek{Cmd: "_return", ID: "web", JID: jid2}, view(masterDown(1)),
			"node m2 +m3 +m1"},
		{"return, own master down", peek{Cmd: "_return", ID: "web", JID: jid1}, view(masterDown(0)), "local +m3 +m2"},
		{"return of a schedule", peek{Cmd: "_return", ID: "web", JID: "req"}, view(), "node m3 +m1 +m2"},
		{"return of an unknown job", peek{Cmd: "_return", ID: "web", JID: jidX}, view(), "node m2 +m1 +m3"},
		{"pub_ret", peek{Cmd: "pub_ret", ID: "web", JID: jid2}, view(), "node m2 +m3 +m1 asks m2"},
		{"pub_ret, published here", peek{Cmd: "pub_ret", ID: "web", JID: jid1}, view(), "local +m3 +m2 asks m1"},
		{"pub_ret, publisher gone", peek{Cmd: "pub_ret", ID: "web", JID: jid2}, view(gone(1)), "local +m3 asks m2"},
		{"pub_ret, publisher not known", peek{Cmd: "pub_ret", ID: "web", JID: jidX}, view(), "local +m2 +m3"},
		{"pub_ret, publisher is no member", peek{Cmd: "pub_ret", ID: "web", JID: jid2}, view(removed(1)), "local +m3"},
		{"pub_ret, publisher's master down", peek{Cmd: "pub_ret", ID: "web", JID: jid2}, view(masterDown(1)),
			"node m2 +m3 +m1 asks m2"},
		{"pub_ret, no master up", peek{Cmd: "pub_ret", ID: "web", JID: jidX},
			view(masterDown(0), masterDown(1), masterDown(2), native(2)), "local +m3"},
		{"pub_ret without a job", peek{Cmd: "pub_ret", ID: "web"}, view(), "local +m3 +m2"},
		{"syndic", peek{Cmd: "_syndic_return", ID: "s", JID: jid2}, view(), "node m2 +m3 +m1"},
		{"syndic, several jobs", peek{Cmd: "_syndic_return", ID: "s", JID: jid2, Mixed: true}, view(), "all +m2 +m3"},

		{"event", peek{Cmd: "_minion_event", ID: "web", Tag: "salt/minion/web/start"}, view(), "node m3 +m1 +m2"},
		{"event, owner draining", peek{Cmd: "_minion_event", ID: "web"}, view(draining(2)), "local +m2 +m3"},
		{"event, owner's master down", peek{Cmd: "_minion_event", ID: "web"}, view(masterDown(2)), "local +m2"},
		{"progress event", peek{Cmd: "_minion_event", ID: "web", JID: jid1, Tag: "salt/job/" + jid1 + "/prog/web/0"}, view(),
			"local +m3 +m2"},
		{"progress event by tag", peek{Cmd: "_minion_event", ID: "web", Tag: "salt/job/" + jid1 + "/prog/web/0"}, view(),
			"local +m3 +m2"},
		{"progress of an unknown job", peek{Cmd: "_minion_event", ID: "web", Tag: "salt/job/" + jidX + "/prog/web/0"}, view(),
			"node m3 +m1 +m2"},
		{"revoke", peek{Cmd: "revoke_auth", ID: "db"}, view(), "node m3 +m2 +m1"},
		{"file push", peek{Cmd: "_file_recv", ID: "mail"}, view(), "node m2 +m1 +m3"},

		{"mine", peek{Cmd: "_mine", ID: "web"}, view(), "all +m2 +m3"},
		{"mine, one gone, one without master", peek{Cmd: "_mine", ID: "web"}, view(gone(1), masterDown(2)), "all +m3"},
		{"mine, own master down", peek{Cmd: "_mine", ID: "web"}, view(masterDown(0)), "node m3 &m2"},
		{"mine, no master", peek{Cmd: "_mine", ID: "web"}, view(masterDown(0), masterDown(1), masterDown(2)), "refuse"},
		{"mine of an owner", peek{Cmd: "_mine", ID: "web"}, view(mines(0, 1, 2)), "node m3 +m1 +m2"},
		{"mine, owner's master down", peek{Cmd: "_mine_flush", ID: "web"}, view(mines(0, 1, 2), masterDown(2)), "local +m2"},
		{"mine, one of before", peek{Cmd: "_mine_delete", ID: "web"}, view(mines(0, 2)), "all +m2 +m3"},
		{"mine, one of before is gone", peek{Cmd: "_mine", ID: "web"}, view(mines(0, 2), gone(1)), "node m3 +m1"},
		{"resources", peek{Cmd: "_register_resources", ID: "web"}, view(), "node m3"},
		{"resources, no 3008", peek{Cmd: "_register_resources", ID: "web"}, view(major(3007)), "answer 80"},
		{"resources, all 3008", peek{Cmd: "_register_resources", ID: "web"}, view(major(3008)), "all +m2 +m3"},

		{"unknown", peek{Cmd: "_frobnicate", ID: "web"}, view(), "answer 80"},
		{"clear command sealed", peek{Cmd: "publish", ID: "web"}, view(), "answer 80"},
	} {
		check.Equal(t, text(Decide(c.p, c.v)), c.want, c.name)
	}
}

func TestSignIn(t *testing.T) {
	for _, c := range []struct {
		name string
		v    View
		want string
	}{
		{"our master decides", view(), "local +m3 +m2"},
		{"it is away", view(masterDown(0)), "node m3 +m2"},
		{"it is away, the ring's first is busy", view(masterDown(0), load(0, 0, 64)), "node m2 +m3"},
		{"it is away, and another one", view(masterDown(0), masterDown(2)), "node m2"},
		{"all are away", view(masterDown(0), gone(1), masterDown(2)), "refuse"},
	} {
		check.Equal(t, text(c.v.SignIn("web")), c.want, c.name)
	}
}

// TestAllNodesAgree: wherever a minion's request comes in, one and the same node ends up with it.
func TestAllNodesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const several = "20260101000000000003"
		v := view(published(several, "m1", "m2", "m3"))
		for i := range v.Nodes {
			v.Nodes[i].Alive = rapid.Bool().Draw(t, "alive")
			v.Nodes[i].MasterUp = v.Nodes[i].Alive && rapid.Bool().Draw(t, "up")
			v.Nodes[i].Draining = rapid.Bool().Draw(t, "draining")
			v.Nodes[i].Weight = rapid.IntRange(0, 3).Draw(t, "weight")
		}
		p := saltwire.Peek{
			Cmd: rapid.SampledFrom([]string{"_return", "_minion_event", "revoke_auth", "_file_recv"}).Draw(t, "cmd"),
			ID:  rapid.StringMatching(`[a-z]{1,8}`).Draw(t, "id"),
			JID: rapid.SampledFrom([]string{"", "req", "20260101000000000001", "20260101000000000002",
				"20200101000000000000", several}).Draw(t, "jid"),
		}
		if p.Cmd == "_return" {
			p.MasterID = rapid.SampledFrom([]string{"", "m1", "master-two", "else"}).Draw(t, "master_id")
		}
		var ends []node.ID
		for _, n := range v.Nodes {
			v.Self = n.ID
			d := Decide(p, v)
			switch d.Kind {
			case ToLocal:
				ends = append(ends, n.ID)
			case ToNode, Keep:
				ends = append(ends, d.Node)
			case Refuse:
				ends = append(ends, "")
			default:
				t.Fatalf("%v for %s", d.Kind, p.Cmd)
			}
			if (d.Kind == ToNode || d.Kind == Keep) && (d.Node == n.ID || slices.Contains(d.Others, d.Node)) {
				t.Fatalf("on %s: %s", n.ID, text(d))
			}
			if d.Kind == ToLocal && slices.Contains(d.Others, n.ID) {
				t.Fatalf("on %s: %s", n.ID, text(d))
			}
		}
		if slices.ContainsFunc(ends, func(e node.ID) bool { return e != ends[0] }) {
			t.Fatalf("nodes send it to %v", ends)
		}
	})
}

// Ids that minions cut are found as long as their job is, and none that could mean two jobs.
func TestWholeJobs(t *testing.T) {
	const cut = "20261127101112000001"
	j := NewJobs(2)
	j.Record(cut+"_1", "m1", 0)
	for publisher, want := range map[node.ID]string{"": cut + "_1", "m1": cut + "_1", "m2": ""} {
		if got, ok := j.Whole(cut, publisher); got != want || ok != (want != "") {
			t.Errorf("of %q: %q, %v", publisher, got, ok)
		}
	}
	j.Record(cut+"_1", "m3", 0) // not known whether it is the same job
	if got, ok := j.Whole(cut, "m3"); ok {
		t.Errorf("of who has published something else: %q", got)
	}
	j.Record(cut+"_2", "m2", 7)
	j.Record(cut+"_2", "m3", 7)
	if got, _ := j.Whole(cut, "m3"); got != cut+"_2" {
		t.Errorf("of the second publisher: %q", got)
	}
	if got, ok := j.Whole(cut, ""); ok {
		t.Errorf("one of two jobs: %q", got)
	}
	j.Record("20261127101112000009_1", "m1", 0) // the first is forgotten
	if got, _ := j.Whole(cut, ""); got != cut+"_2" {
		t.Errorf("the job that is left: %q", got)
	}
	j.Record("20261127101112000008", "m1", 0)
	if len(j.cut) != 1 || len(j.byJID) != 2 {
		t.Errorf("%d cut ids of %d jobs are remembered", len(j.cut), len(j.byJID))
	}
}

// An id is contested when another node publishes another job under it.
func TestContestedIDs(t *testing.T) {
	for name, c := range map[string]struct {
		publisher node.ID
		content   uint64
		want      bool
	}{
		"another job": {"m2", 2, true}, "the same job through another syndic": {"m2", 1, false},
		"its own node": {"m1", 2, false}, "content not known": {"m2", 0, false},
	} {
		j := NewJobs(0)
		j.Record("1", "m1", 1)
		if several := j.Several("1"); several != nil {
			t.Errorf("%s: several before it: %v", name, several)
		}
		first, clash := j.Record("1", c.publisher, c.content)
		if clash != c.want || j.Contested("1") != c.want || clash && first != "m1" {
			t.Errorf("%s: %q, %v, %v", name, first, clash, j.Contested("1"))
		}
		if _, again := j.Record("1", c.publisher, c.content); again {
			t.Errorf("%s: named twice", name)
		}
		if n, _ := j.Lookup("1"); n != "m1" {
			t.Errorf("%s: belongs to %q", name, n)
		}
		same := c.publisher != "m1" && c.content == 1
		if several := j.Several("1"); (several != nil) != same || same && !slices.Equal(several, []node.ID{"m1", "m2"}) {
			t.Errorf("%s: published by %v", name, several)
		}
	}
}

func TestJobs(t *testing.T) {
	j := NewJobs(2)
	j.Record("1", "m1", 0)
	j.Record("2", "m2", 0)
	j.Record("1", "m3", 0) // a second publisher of a jid is a mistake
	if n, ok := j.Lookup("1"); !ok || n != "m1" {
		t.Errorf("job 1 belongs to %q", n)
	}
	j.Record("3", "m3", 0)
	if _, ok := j.Lookup("2"); ok || j.Len() != 2 {
		t.Error("the job used longest ago was not forgotten")
	}
	for _, jid := range []string{"", "req"} {
		j.Record(jid, "m1", 0)
		if _, ok := j.Lookup(jid); ok {
			t.Errorf("%q is a job", jid)
		}
	}
	check.Equal(t, NewJobs(0).max, DefaultJobs, "default")
}

func TestKindNames(t *testing.T) {
	for k := Refuse; k <= Split; k++ {
		if k.String() == "" || strings.Contains(k.String(), "invalid") {
			t.Errorf("kind %d has no name", k)
		}
	}
	check.Equal(t, Kind(200).String(), "invalid", "a kind out of range has a name")
}

func BenchmarkDecideReturn(b *testing.B) {
	v := view()
	p := saltwire.Peek{Cmd: "_return", ID: "web", JID: "20260101000000000002", MasterID: "m3"}
	b.ReportAllocs()
	for b.Loop() {
		Decide(p, v)
	}
}
