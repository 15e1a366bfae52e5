//go:build integration

package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/saltwire"
)

// rulesTTL is the request_server_ttl of these masters, in seconds.
const rulesTTL = 60

// rulesModes are rules that are not enforced here.
var rulesModes = map[string]string{"event_ids": "log", "job_ids": "log", "master_tops": "off", "syndic_returns": "off"}

// TestRules is what a minion with a valid key says to stock masters of three versions behind us that read a request in
// other ways than its shape says, that let requests age, that cache pillars, and where some rules are not enforced.
func TestRules(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(ctx, lab.ClusterSpec{
		Masters: lab.Versions, Minions: lab.Versions[:1],
		MasterSettings: lab.Settings{"timeout": 5, "gather_job_timeout": 15, "request_server_ttl": rulesTTL,
			"pillar_cache": true, "pillarenv_from_saltenv": true},
		DaemonSettings: lab.Settings{"health_trusted": []string{"0.0.0.0/0"}, "cluster_wall": rulesModes},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Up(ctx))
	var masters []*lab.Master
	for _, n := range c.Nodes {
		masters = append(masters, n.Master)
	}
	bus := listen(t, masters...)
	var met []*play.Minion // the second one has the name that the first one's pillar of an environment is kept under
	for _, id := range []string{"hostile", "hostile:prod"} {
		m, err := play.New(c.Minions[0].Host(), id)
		labtest.Must(t, err)
		admitPlayed(t, c, m)
		met = append(met, m)
	}
	for _, n := range c.Nodes {
		for _, m := range met {
			_, err := m.SignIn(ctx, n.Addr)
			labtest.Must(t, err)
		}
		t.Run(n.Master.Version, func(t *testing.T) {
			t.Run("text as an extension", func(t *testing.T) { testExtensions(t, met[0], n) })
			t.Run("what was recorded", func(t *testing.T) { testRecorded(t, met[0], n) })
			t.Run("a pillar that is another's", func(t *testing.T) { testKeptPillar(t, met[0], met[1], n) })
			t.Run("rules that are not enforced", func(t *testing.T) { testRelaxed(t, c, met[0], met[1].ID, n, bus) })
		})
	}
	bus.fence(ctx, t)
	for _, n := range c.Nodes {
		for _, tag := range []string{"salt/run/" + wallProbe, "salt/lab/" + wallProbe} {
			if got := bus.count(n.Name, tag); got != 0 {
				t.Errorf("%s: %s fired %d times", n.Name, tag, got)
			}
		}
	}
}

// wallSaid asks a node and says what became of it: the answer, nil for "bad load".
func wallSaid(t *testing.T, m *play.Minion, n *lab.Node, cmd string, fields map[string]any) []byte {
	t.Helper()
	got, err := m.Request(t.Context(), n.Addr, cmd, fields)
	if refused, ok := errors.AsType[*play.NotSealedError](err); ok && refused.Text == "bad load" {
		return nil
	}
	labtest.Must(t, err)
	return got
}

// wallMoved wants a rule to have found something once more, refused or logged, while a request was answered.
func wallMoved(t *testing.T, n *lab.Node, what, rule, action string, ask func()) {
	t.Helper()
	count := func(action string) float64 {
		return metricSum(t, n, "saltcluster_wall_findings_total", `rule="`+rule+`"`, `action="`+action+`"`)
	}
	before := map[string]float64{"refused": count("refused"), "logged": count("logged")}
	ask()
	for a, was := range before {
		want := was
		if a == action {
			want++
		}
		if now := count(a); now != want {
			t.Errorf("%s: %s has %s %v", what, rule, a, now-was)
		}
	}
}

// extension is text as one of msgpack's extension types.
func extension(code byte, text string) saltwire.Value {
	return append(saltwire.Value{0xc7, byte(len(text)), code}, text...)
}

// Salt unpacks an extension of any type but its own two as if its content had been sent as text. Nothing reaches a
// master in that shape.
func testExtensions(t *testing.T, m *play.Minion, n *lab.Node) {
	event := func(tag any) map[string]any {
		return map[string]any{"tag": tag, "data": map[string]any{"probe": wallProbe}}
	}
	for _, code := range []byte{0, 1, 5, 77, 80, 127, 128, 255} {
		text := func(s string) saltwire.Value { return extension(code, s) }
		for what, r := range map[string]struct {
			cmd    string
			fields map[string]any
		}{
			"tag":           {"_minion_event", event(text("salt/run/" + wallProbe))},
			"tag in a list": {"_minion_event", map[string]any{"events": []any{event(text("salt/run/" + wallProbe))}}},
			"tag before a list": {"_minion_event", map[string]any{"pretag": text("salt"),
				"events": []any{event("run/" + wallProbe)}}},
			"path":        {"_serve_file", map[string]any{"path": text("../x"), "saltenv": "base", "loc": 0}},
			"environment": {"_file_list", map[string]any{"saltenv": text("../x")}},
			"job":         {"pub_ret", map[string]any{"jid": text("../x")}},
			"resource": {"_return", map[string]any{"jid": "req", "fun": "test.ping", "return": wallProbe,
				"resource_id": text("../x")}},
			"id":                 {"_mine_get", map[string]any{"id": text(m.ID), "tgt": "*", "fun": "test.ping"}},
			"command":            {"_pillar", map[string]any{"cmd": text("_pillar"), "grains": map[string]any{}}},
			"pillar environment": {"_pillar", map[string]any{"grains": map[string]any{}, "pillarenv": text("prod")}},
			"deep in data": {"_minion_event", map[string]any{
				"tag": "salt/lab/" + wallProbe, "data": map[string]any{"a": []any{map[string]any{"b": text("x")}}},
			}},
		} {
			name := fmt.Sprintf("%s as type %d", what, code)
			wallMoved(t, n, name, "request_shape", "refused", func() {
				if got := wallSaid(t, m, n, r.cmd, r.fields); got != nil {
					t.Errorf("%s: answered %q", name, got)
				}
			})
		}
	}
	// A constant of Salt's may have anything in it. Where text decides it is none.
	constant := extension(79, "\x92\xa8salt/key\xc0")
	wallMoved(t, n, "a constant for a tag", "event_tags", "refused", func() {
		if got := wallSaid(t, m, n, "_minion_event", map[string]any{"events": []any{event(constant)}}); !bytes.Equal(got,
			[]byte{0xc0}) {
			t.Errorf("a constant for a tag: answered %q", got)
		}
	})
	wallMoved(t, n, "a constant for a path", "file_paths", "refused", func() {
		if got := wallSaid(t, m, n, "_serve_file",
			map[string]any{"path": constant, "saltenv": "base", "loc": 0}); !bytes.Equal(got, []byte{0xa0}) {
			t.Errorf("a constant for a path: answered %q", got)
		}
	})
	wallMoved(t, n, "a datetime in data", "request_shape", "", func() {
		fields := map[string]any{"tag": "lab/dated", "data": map[string]any{"at": extension(78, "20260102T03:04:05.000006")}}
		if got := wallSaid(t, m, n, "_minion_event", fields); len(got) != 1 {
			t.Errorf("a datetime in data: answered %q", got)
		}
	})
}

// What was recorded of a minion is answered for as long as the master's request_server_ttl, and refused after that; so
// is what says of itself that it never ages.
func testRecorded(t *testing.T, m *play.Minion, n *lab.Node) {
	now := time.Now().Unix()
	send := func(body []byte) []byte {
		z, err := m.Dial(t.Context(), n.Addr, "4506", "REQ")
		labtest.Must(t, err)
		defer z.Close()
		labtest.Must(t, z.WriteMessage(nil, body))
		parts, err := z.ReadMessage()
		labtest.Must(t, err)
		return parts[len(parts)-1]
	}
	recorded := func(ts any) []byte {
		body, _, err := m.Seal(m.Secrets(), "_file_list", map[string]any{"saltenv": "base", "ts": ts})
		labtest.Must(t, err)
		return body
	}
	fresh := recorded(now - rulesTTL/2)
	for range 2 {
		wallMoved(t, n, "a request half as old as may be", "identity", "", func() {
			if got := send(fresh); bytes.Equal(got, saltwire.BadLoad()) {
				t.Error("a request half as old as may be is refused")
			}
		})
	}
	for what, ts := range map[string]any{"an hour old": now - 3600, "of the first second": 0, "of long before": -1 << 62} {
		old := recorded(ts)
		for range 2 {
			wallMoved(t, n, what, "identity", "refused", func() {
				check.EqualSlices(t, send(old), saltwire.BadLoad(), what, "answered")
			})
		}
	}
	load := map[string]any{"cmd": "_file_list", "id": m.ID, "nonce": strings.Repeat("0f", 16), "tok": m.Token(),
		"saltenv": "base"}
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	labtest.Must(t, err)
	wallMoved(t, n, "without a time", "identity", "refused", func() {
		_, err := m.RequestLoad(t.Context(), n.Addr, plain, strings.Repeat("0f", 16))
		if refused, ok := errors.AsType[*play.NotSealedError](err); !ok || refused.Text != "bad load" {
			t.Errorf("without a time: %v", err)
		}
	})
	for what, ts := range map[string]any{"text": "1", "a fraction": 1.5, "nothing": nil, "true": true} {
		body := recorded(ts)
		wallMoved(t, n, "a time that is "+what, "request_shape", "refused", func() {
			check.EqualSlices(t, send(body), saltwire.BadLoad(), "a time that is", what, "answered")
		})
	}
}

// A master of 3008 that caches pillars keeps that of an environment as ID:ENVIRONMENT. Nobody has one rendered under
// another minion's id.
func testKeptPillar(t *testing.T, m, other *play.Minion, n *lab.Node) {
	grains := func() map[string]any { return map[string]any{"id": m.ID, "os": "lab"} }
	ask := func(who *play.Minion, fields map[string]any) []byte {
		fields["grains"], fields["ver"] = grains(), "2"
		return wallSaid(t, who, n, "_pillar", fields)
	}
	// another node may have had the other minion's own pillar rendered here, when its master was slow
	kept := func() (of map[string]string) {
		of = map[string]string{}
		files, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "pillar*", other.ID+"*"))
		labtest.Must(t, err)
		for _, f := range files {
			raw, err := os.ReadFile(f)
			labtest.Must(t, err)
			of[f] = string(raw)
		}
		return of
	}
	before := kept()
	for what, fields := range map[string]map[string]any{
		"pillarenv": {"saltenv": nil, "pillarenv": "prod"}, "saltenv": {"saltenv": "prod", "pillarenv": nil},
		"the old name":       {"env": "prod"},
		"pillarenv as bytes": {"saltenv": "base", "pillarenv": saltwire.Value("\xc4\x04prod")},
	} {
		wallMoved(t, n, what, "file_paths", "refused", func() {
			if got := ask(m, fields); got != nil {
				t.Errorf("%s: answered %.60q", what, got)
			}
		})
	}
	if after := kept(); !maps.Equal(after, before) {
		t.Errorf("kept: %q", after)
	}
	wallMoved(t, n, "one's own pillars", "file_paths", "", func() {
		if ask(m, map[string]any{"saltenv": nil, "pillarenv": "dev"}) == nil ||
			ask(other, map[string]any{"saltenv": nil, "pillarenv": nil}) == nil {
			t.Error("one's own pillar is refused")
		}
	})
}

// A rule whose mode is log counts what it finds and lets it pass; one that is off does not look. What is found and not
// refused has no way to a file, either.
func testRelaxed(t *testing.T, c *lab.Cluster, m *play.Minion, victim string, n *lab.Node, bus *listeners) {
	tag := "salt/minion/" + victim + "/" + n.Name
	wallMoved(t, n, "an event of another minion", "event_ids", "logged", func() {
		if got := wallSaid(t, m, n, "_minion_event", map[string]any{"tag": tag, "data": map[string]any{}}); len(got) != 1 {
			t.Errorf("an event of another minion: answered %q", got)
		}
	})
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, tag+" to fire", func(context.Context) error {
		fired := 0
		for _, n := range c.Nodes {
			fired += bus.count(n.Name, tag)
		}
		if fired != 1 {
			return fmt.Errorf("%d times", fired)
		}
		return nil
	}))
	wallMoved(t, n, "a path for a job id", "job_ids", "logged", func() {
		if got := wallSaid(t, m, n, "pub_ret", map[string]any{"jid": "../../../../etc/hostname"}); len(got) != 1 {
			t.Errorf("a path for a job id: answered %q", got)
		}
	})
	wallMoved(t, n, "another minion's classes", "master_tops", "", func() {
		if got := wallSaid(t, m, n, "_master_tops", map[string]any{"opts": map[string]any{"id": victim}}); !bytes.Equal(got,
			[]byte{0x80}) {
			t.Errorf("another minion's classes: answered %q", got)
		}
	})
	wallMoved(t, n, "whom a job is for", "syndic_returns", "", func() {
		fields := map[string]any{"jid": "req", "fun": "test.ping", "return": true, "minions": []any{victim}}
		check.EqualSlices(t, wallSaid(t, m, n, "_return", fields), []byte{0xc0}, "whom a job is for: answered")
	})
}
