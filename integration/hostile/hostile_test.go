package hostile

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/mirror"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

func aScene(seed uint64) *scene {
	return &scene{
		seed: seed, own: "hostile-1", others: []string{"min06-1", "min07-1"}, nodes: []string{"m1", "m2"},
		jids:    []string{"20260101120000000000"},
		outside: "/outside", token: []byte("stolen"), pub: "pub",
	}
}

func TestRequestsFollowFromTheSeed(t *testing.T) {
	same := 0
	for n := range 300 {
		a, b := aScene(7).request(n), aScene(7).request(n)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s became %s", a, b)
		}
		if a.String() == aScene(8).request(n).String() {
			same++
		}
	}
	if same > 30 {
		t.Errorf("%d of 300 requests are the same with another seed", same)
	}
}

// Every command of every version is tried, with each of its fields and without, as usual and with something wrong.
func TestEveryCommandIsTried(t *testing.T) {
	tried, plain := map[string]int{}, map[string]int{}
	kinds := map[carriage]int{}
	for n := range 5000 {
		r := aScene(1).request(n)
		tried[r.Cmd]++
		kinds[r.carriage]++
		if len(r.Twists) == 0 {
			plain[r.Cmd]++
		}
	}
	for _, c := range router.Commands {
		if c.Name != revokeAuth.cmd && (tried[c.Name] < 30 || plain[c.Name] < 5) {
			t.Errorf("%s is tried %d times, %d times with nothing wrong", c.Name, tried[c.Name], plain[c.Name])
		}
	}
	if tried[revokeAuth.cmd] > 0 {
		t.Error("the minion revokes its own key")
	}
	if len(kinds) != int(carriages) {
		t.Errorf("carriages: %v", kinds)
	}
}

// Returns of jobs that were never published, and nothing else wrong with them, are tried in every minute: nothing else
// would show whether a rule is there for them.
func TestRequests_UnpublishedJobs(t *testing.T) {
	const minute = 60 * 45
	n := 0
	for i := range minute {
		r := aScene(1).request(i)
		at := slices.IndexFunc(r.fields, func(e entry) bool { return string(e.key) == string(text("jid")) })
		if r.Cmd == "_return" && len(r.Twists) == 0 && at >= 0 && strings.Contains(string(r.fields[at].value), unpublished) &&
			!r.names("schedule") && !r.names("master_id") && !r.names("resource_id") && !r.names("minions") {
			n++
		}
	}
	if n < 5 {
		t.Errorf("%d of %d", n, minute)
	}
}

// Most requests reach what looks at commands: a fuzzer that is refused for its envelope tries nothing else.
func TestMostRequestsAreAuthentic(t *testing.T) {
	c := credentials{id: "hostile-1", tok: []byte("tok"), session: saltcrypt.NewCrypticle(saltcrypt.Key{7})}
	through, all := 0, 2000
	for n := range all {
		r := aScene(3).request(n)
		env, err := saltwire.ParseEnvelope(r.body(c))
		if err != nil {
			continue
		}
		plain := env.Load
		if env.Enc == saltwire.EncAES {
			if plain, err = c.session.Open(nil, env.Load); err != nil {
				continue
			}
		}
		if p, err := saltwire.PeekLoad(plain); err == nil && (env.Enc == saltwire.EncClear || p.ID == c.id) {
			through++
		}
	}
	if through < all/2 {
		t.Errorf("%d of %d get through", through, all)
	}
}

func TestMarks(t *testing.T) {
	d := aScene(0xabcdef0123).dice(42)
	if n, ok := marked(d.seed, "before "+d.mark()+" after"); !ok || n != 42 {
		t.Errorf("request %d, %t", n, ok)
	}
	if _, ok := marked(d.seed, "hx00000001n1z"); ok {
		t.Error("the mark of another seed")
	}
}

func TestJudgeTag(t *testing.T) {
	s := aScene(1)
	for tag, want := range map[string]string{
		"hostile/x": "", "my/own/tag": "", "salt/minion/hostile-1/start": "", "salt/beacon/hostile-1/load/": "",
		"minion/refresh/hostile-1":                    "",
		"salt/job/20260101120000000000/ret/hostile-1": "", "salt/job/1/prog/hostile-1/3": "", "saltkey": "",
		"salt/key": "tags", "salt/auth": "tags", "key": "tags", "rotate_aes_key": "tags", "salt/job/1/new": "tags",
		"salt/run/1/ret": "tags",
		"cluster/peer":   "tags", "salt/wheel/1/new": "tags", "salt/presence/change": "tags", "salt/job/1/return": "tags",
		"salt/minion/min06-1/start": "names", "salt/beacon/min07-1/x/": "names", "salt/job/1/ret/min06-1": "names",
		"minion/refresh/min06-1":   "names",
		"salt/minion/nobody/start": "", "salt/syndic/min06-1/start": "names", "site/salt/reactors/manage/add": "tags",
		"resource/refresh/x":                     "tags",
		"salt/job/1/sub/min06-1/error/state.sls": "names", "salt/job/1/start/min06-1": "names",
		"syndic/job/1/prog/min06-1/2": "names",
		"salt/job/1/refresh/min06-1":  "names", "salt/job/1/sub/hostile-1/error/state.sls": "",
	} {
		check.Equal(t, s.judgeTag(tag), want, tag)
	}
}

func TestJudgeData(t *testing.T) {
	s := aScene(1)
	for _, c := range []struct {
		tag  string
		data packed
		bad  bool
	}{
		{"salt/job/1/ret/hostile-1", dict(pair("id", text("hostile-1")), entry{number(1), null}), false},
		{"salt/job/1/ret/hostile-1", dict(pair("id", text("min06-1"))), true},
		{"salt/job/1/x", dict(entry{number(1), null}, pair("resource_id", text("min07-1"))), true},
		{"salt/job/1/x", dict(pair("minions", list())), true},
		{"site/x", dict(pair("minions", list()), pair("id", text("min06-1"))), false},
		{"salt/minion/hostile-1/start", dict(pair("id", text("min06-1"))), true},
		{"salt/minion/hostile-1/start", dict(pair("id", text("hostile-1"))), false},
	} {
		if got := s.judgeData(c.tag, c.data); (got != "") != c.bad {
			t.Errorf("%s %s: %q", c.tag, quote(c.data), got)
		}
	}
}

// What a subscriber says is bounded, and follows from the seed.
func TestFrames(t *testing.T) {
	for n := range 50 {
		a, b := aScene(7).dice(subscribers+n).frames(), aScene(7).dice(subscribers+n).frames()
		if len(a) == 0 || len(a) > 3100 || !reflect.DeepEqual(a, b) {
			t.Fatalf("%d frames", len(a))
		}
	}
}

// A job that was never published is held against a node that had to know.
func TestMustBeKnown(t *testing.T) {
	s := aScene(1)
	held, stored := 0, 0
	for n := range 2000 {
		r := s.request(n)
		if r.Cmd != "_return" {
			continue
		}
		for _, e := range r.fields {
			id, ok := strings.CutPrefix(string(e.value), "\xb4"+unpublished)
			if !ok || string(e.key) != string(text("jid")) || !s.mustBeKnown(unpublished+id) {
				continue
			}
			if stored++; s.mustBeKnown(unpublished + "99" + id[2:]) {
				t.Errorf("an id that ends with the number of %s, and was made up by another seed, is held against a node", r)
			}
		}
		if s.mustBeKnown(s.dice(n).mark()) {
			held++
			if r.names("schedule") || s.ofAnotherNode(r) {
				t.Errorf("%s is held against a node", r)
			}
		}
	}
	if held == 0 || stored == 0 {
		t.Errorf("%d by their marks, %d by their ids", held, stored)
	}
	n := 0
	for s.request(n).Cmd != "_return" || !s.request(n).names("schedule") {
		n++
	}
	if s.mustBeKnown(fmt.Sprintf("20990101120000%06d", n)) {
		t.Errorf("the stored id of request %d is", n)
	}
}

func TestBelongs(t *testing.T) {
	s := aScene(1)
	const c = "var/cache/salt/master/"
	for path, want := range map[string]bool{
		c + "minions/hostile-1/data.p": true, c + "minions/hostile-1/files/a/b": true, c + "grains/hostile-1.p": true,
		c + "pillar/hostile-1:dev.p":                  true,
		c + `pillar/hostile-1:..\..\tmp/a branch/x.p`: true, c + "pillar/hostile-1:x/../../x.p": false,
		c + "pillar/hostile-11:x.p": false,
		c + "sessions/hostile-1":    true, c + "jobs/ab/cd/jid": true, "etc/salt/pki/master/minions_pre/x": true,
		c + "minions/hostile-11/data.p": false, c + "minions/min06-1/data.p": false, c + "grains/hostile-1x.p": false,
		c + "tokens/abc":   false,
		"srv/salt/top.sls": false, "etc/salt/pki/master/minions/hostile-1": false, "etc/salt/master": false,
		c + "publish_auth/../x": false,
		"x/" + c + "jobs/a":     false,
	} {
		check.Equal(t, s.belongs(path), want, path)
	}
}

// A return is what somebody waits for who waits for a job, on the bus it was fired on or mirrored to another one.
func TestHeardReturn(t *testing.T) {
	const jid = "20260101120000000000"
	for tag, want := range map[string]int{
		"salt/job/" + jid + "/ret/min07-1": 1, mirror.Prefix + "m2/salt/job/" + jid + "/ret/min07-1": 1,
		"salt/job/" + jid + "/ret/hostile-1": 0, "x/job/" + jid + "/ret/min07-1": 0, "salt/job/" + jid + "/prog/min07-1/1": 0,
	} {
		w := &world{scene: aScene(1), book: newBook(1, nil)}
		w.heardReturn(&lab.Node{Host: &lab.Host{Name: "m1"}}, tag, "evidence")
		if got := len(w.book.report().Violations); got != want {
			t.Errorf("%s: %d violations, want %d", tag, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	b := newBook(1, []string{"jobs"})
	b.violated("minions", "", "one %s", "thing")
	for range maxViolations + 5 {
		b.violated("tags", "x"+aScene(1).dice(9).mark(), "a tag")
		b.violated("jobs", "", "not judged")
	}
	r := b.report()
	if len(r.Violations) != maxViolations+1 || r.Violations[0].String() != "tags: a tag [request 9]" ||
		r.Violations[maxViolations].String() != "minions: one thing" {
		t.Errorf("%d violations: %v", len(r.Violations), r.Violations)
	}
	if s := r.Summary(); !strings.Contains(s, "jobs: 25 times") || !strings.Contains(s, "tags: 25 times") {
		t.Errorf("%s", s)
	}
}
