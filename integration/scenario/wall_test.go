//go:build integration

package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// wallEnforced is said of the rules that know a site the least.
var wallEnforced = map[string]string{"event_ids": "enforce", "return_jobs": "enforce", "mine_targets": "enforce"}

// wallFound is how often a rule has refused something at a node, since that was started.
func wallFound(t *testing.T, n *lab.Node, rule string) float64 {
	t.Helper()
	return metricSum(t, n, "saltcluster_wall_findings_total", `rule="`+rule+`"`, `action="refused"`)
}

// wallRefused is that of all rules.
func wallRefused(t *testing.T, n *lab.Node) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	metric(t, n, func(line string) bool {
		rest, ours := strings.CutPrefix(line, "saltcluster_wall_findings_total{")
		_, rest, named := strings.Cut(rest, `rule="`)
		rule, _, _ := strings.Cut(rest, `"`)
		if fields := strings.Fields(line); ours && named && strings.Contains(line, `action="refused"`) {
			n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
			labtest.Must(t, err)
			out[rule] = n
		}
		return false
	})
	return out
}

// legal watches that the rules refuse nothing of what real minions do in other tests.
type legal struct {
	c    *lab.Cluster
	seen map[string]float64 // by node and rule
}

func newLegal(c *lab.Cluster) *legal { return &legal{c, map[string]float64{}} }

// check looks what was refused since the last time; expected: there was to be something.
func (l *legal) check(t *testing.T, during string, expected bool) {
	t.Helper()
	for _, n := range l.c.Nodes {
		found := wallRefused(t, n)
		for _, rule := range wall.Names() {
			now, key := found[rule], n.Name+" "+rule
			before := l.seen[key]
			if now < before { // it was started anew
				before = 0
			}
			if now != before && !expected {
				t.Errorf("%s: %s has refused %v requests of minions that meant well", during, key, now-before)
			}
			l.seen[key] = now
		}
	}
}

// wallProbe marks what must be on no bus and in no job cache.
const wallProbe = "wallprobe"

// wallCase is a request of a minion with a valid key that means no good.
type wallCase struct {
	rule, cmd string
	fields    map[string]any
	answer    []byte // what a stock master says; nil: that it has to sign in again
}

// wallCases are the classes of published weaknesses that need a valid key, each as its publication describes it. victim
// is another minion.
func wallCases(victim string) []wallCase {
	mark := map[string]any{"probe": wallProbe}
	none, no, empty := []byte{0xc0}, []byte{0xc2}, []byte{0x80}
	event := func(rule, tag string) wallCase {
		return wallCase{rule, "_minion_event", map[string]any{"tag": tag, "data": mark}, none}
	}
	in := func(rule string, pretag any, tags ...string) wallCase {
		var events []any
		for _, tag := range tags {
			events = append(events, map[string]any{"tag": tag, "data": mark})
		}
		return wallCase{rule, "_minion_event", map[string]any{"events": events, "pretag": pretag}, none}
	}
	tells := func(rule, tag string, data map[string]any) wallCase {
		data["probe"] = wallProbe
		return wallCase{rule, "_minion_event", map[string]any{"events": []any{map[string]any{"tag": tag, "data": data}}},
			none}
	}
	jid := "20260102030405000001"
	states := func(name string) map[string]any {
		return map[string]any{"jid": jid, "fun": "state.sls", "retcode": 2,
			"return": map[string]any{name: map[string]any{"result": false, "probe": wallProbe}}}
	}
	return []wallCase{
		event("event_tags", "salt/job/"+jid+"/publish"), event("event_tags", "salt/key"), event("event_tags", "salt/auth"),
		event("event_tags", "salt/run/"+jid+"/ret"), event("event_tags", "salt/cluster/x"),
		event("event_tags", "cluster/peer/join"),
		in("event_tags", nil, "salt/key", "salt/auth"), in("event_tags", "salt/job", jid+"/new"),
		event("return_ids", "salt/job/"+jid+"/ret/"+victim), event("event_ids", "salt/minion/"+victim+"/start"),
		{"return_ids", "_return", map[string]any{"jid": jid, "fun": "test.ping", "return": wallProbe, "resource_id": victim},
			none},
		{"syndic_returns", "_syndic_return", map[string]any{"load": []any{map[string]any{
			"id": "hostile", "jid": jid, "fun": "test.ping",
			"return": map[string]any{"low": map[string]any{"return": wallProbe}},
		}}}, none},
		{"job_ids", "pub_ret", map[string]any{"jid": "../" + jid}, []byte{0xa0}},
		{"file_paths", "_serve_file", map[string]any{"path": "../x", "saltenv": "base", "loc": 0},
			[]byte("\x82\xa4data\xa0\xa4dest\xa0")},
		{"file_paths", "_file_list", map[string]any{"saltenv": "../x", "prefix": ""}, []byte{0x90}},
		{"file_paths", "_file_hash", map[string]any{"path": "x?saltenv=..", "saltenv": "base"}, []byte{0xa0}},
		{"file_paths", "_file_envs", map[string]any{"back": []any{"-x"}}, []byte{0x90}},
		{"file_recv", "_file_recv", map[string]any{"path": []any{"etc", "x"}, "loc": 0, "data": wallProbe}, no},
		{"aes_commands", "run_func", nil, empty},
		event("event_tags", "salt/reactors/manage/list"),
		tells("event_tags", "lab/x", map[string]any{"__peer_id": "m2"}),
		tells("return_ids", "salt/job/"+jid+"/ret/hostile", map[string]any{"id": victim, "return": wallProbe}),
		tells("event_ids", "salt/minion/hostile/start", map[string]any{"id": victim}),
		tells("syndic_returns", "lab/x", map[string]any{"jid": jid, "minions": []any{victim}}),
		{"return_ids", "_register_resources", map[string]any{"resources": map[string]any{},
			"resource_grains": map[string]any{"../x": mark}}, empty},
		{"return_ids", "_return", map[string]any{"jid": jid, "fun": "test.ping", "return": wallProbe,
			"resource_id": "m1_master"}, none},
		{"return_ids", "_return", map[string]any{"jid": jid, "fun": "test.ping", "return": wallProbe,
			"resource_id": "nocache"}, none},
		{"syndic_returns", "_return", map[string]any{"jid": jid, "fun": "test.ping", "return": wallProbe,
			"minions": []any{victim}}, none},
		{"master_tops", "_master_tops", map[string]any{"opts": map[string]any{"id": victim}}, empty},
		{"event_tags", "_return", states("salt/run/" + jid + "/ret_|-a_|-b_|-x"), none},
		{"event_tags", "_return", states("a_|-b_|-c_|-salt/reactors/manage/list"), none},
		{"event_ids", "_return", states("salt/minion/" + victim + "/start_|-a_|-b_|-x"), none},
		{"mine_targets", "_mine_get", map[string]any{"tgt": "demo:for:^" + victim, "tgt_type": "pillar_pcre",
			"fun": "test.ping"}, empty},
		{"file_paths", "_pillar", map[string]any{"grains": map[string]any{}, "pillarenv": "../x"}, nil},
		{"return_ids", "_syndic_return", map[string]any{"load": []any{map[string]any{
			"id": "../x", "jid": jid, "fun": "test.ping", "return": map[string]any{"low": map[string]any{"return": wallProbe}},
		}}}, none},
		{"identity", "_mine_get", map[string]any{"tok": bytes.Repeat([]byte{1}, 256), "tgt": victim, "fun": "test.ping"},
			nil},
		{"identity", "_return", map[string]any{"tok": []byte{}, "jid": jid, "fun": "test.ping", "return": wallProbe}, nil},
		{"identity", "_pillar", map[string]any{"id": victim, "grains": map[string]any{}}, nil},
		{"request_shape", "_minion_event", map[string]any{"nonce": "x", "tag": "lab/x", "data": mark}, nil},
	}
}

// What a minion with a valid key must not do is refused at the edge, whichever version the master behind it has, and
// counted by rule; stock minions of all versions hear what they would hear from their masters.
func testWall(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m, err := play.New(c.Minions[0].Host(), "hostile")
	labtest.Must(t, err)
	admitPlayed(t, c, m)
	listeners := busListeners(t, c)
	for _, n := range c.Nodes {
		_, err := m.SignIn(ctx, n.Addr)
		labtest.Must(t, err)
		for i, w := range wallCases(c.Minions[0].ID) {
			before := wallFound(t, n, w.rule)
			got, err := m.Request(ctx, n.Addr, w.cmd, w.fields)
			if w.answer == nil && errors.Is(err, play.ErrReply) && strings.Contains(err.Error(), "bad load") {
				err = nil
			}
			if err != nil || !bytes.Equal(got, w.answer) {
				t.Errorf("%s (%s), case %d: %s: answered %q, %v", n.Name, n.Master.Version, i, w.rule, got, err)
			}
			if now := wallFound(t, n, w.rule); now != before+1 {
				t.Errorf("%s (%s), case %d: %s has refused %v", n.Name, n.Master.Version, i, w.rule, now-before)
			}
		}
	}
	for _, n := range c.Nodes {
		onDemand(t, m, n)
		strangersAtTheWall(t, m, n)
		speaksAsMaster(t, c, m, n)
	}
	stockMinions(t, c)
	quietBuses(t, c, listeners)
	for _, n := range c.Nodes {
		if _, err := os.Stat(filepath.Join(n.Master.CacheDir(), "minions", m.ID, "files")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a file was pushed: %v", n.Name, err)
		}
	}
	showWall(t, c)
	dismissPlayed(t, c, m.ID)
}

// onDemand asks for external pillars that the master's configuration does not name: the request goes on without them.
func onDemand(t *testing.T, m *play.Minion, n *lab.Node) {
	t.Helper()
	before := wallFound(t, n, "pillar_ext")
	_, err := m.Request(t.Context(), n.Addr, "_pillar", map[string]any{
		"grains": map[string]any{"id": m.ID, "os": wallProbe}, "saltenv": nil, "pillarenv": nil,
		"ext": map[string]any{"git": []any{wallProbe}, "virtkey": true}, "ver": "2",
	})
	// a pillar is sealed with the minion's own key
	if refused, ok := errors.AsType[*play.NotSealedError](err); ok || err != nil && !errors.Is(err, play.ErrReply) {
		t.Errorf("%s (%s): a pillar without what was asked for: %v, %v", n.Name, n.Master.Version, refused, err)
	}
	if now := wallFound(t, n, "pillar_ext"); now != before+1 {
		t.Errorf("%s (%s): on-demand pillars are refused %v times", n.Name, n.Master.Version, now-before)
	}
}

// strangerCases are the classes of published weaknesses that need no key, by the reason they are refused for.
func strangerCases(pub string) map[string][]map[string]any {
	clear := func(load map[string]any) map[string]any {
		return map[string]any{"enc": "clear", "load": load, "version": 3}
	}
	cmd := func(name string) map[string]any {
		return clear(map[string]any{"cmd": name, "fun": "test.ping", "token": "../x"})
	}
	auth := func(id, pub string, version int) map[string]any {
		msg := clear(map[string]any{"cmd": "_auth", "id": id, "pub": pub, "nonce": strings.Repeat("0f", 16),
			"enc_algo": "OAEP-SHA1", "sig_algo": "PKCS1v15-SHA1"})
		msg["version"] = version
		return msg
	}
	return map[string][]map[string]any{
		"unknown_command": {cmd("_prep_auth_info"), cmd("_send_pub"), cmd("_file_recv"), cmd("__init__")},
		"admin_command":   {cmd("publish"), cmd("runner"), cmd("wheel"), cmd("mk_token"), cmd("get_token")},
		"invalid_minion_id": {auth("../../x", pub, 3), auth("x/", pub, 3), auth("x\x00", pub, 3), auth("", pub, 3),
			auth(".x", pub, 3)},
		"version_too_old": {auth("stranger", pub, 2), auth("stranger", pub, 0)},
		"unusable_pub":    {auth("stranger", "x", 3)},
		"missing_field": {clear(map[string]any{"id": "stranger"}),
			clear(map[string]any{"cmd": "_auth", "id": "stranger"})},
		"wrong_type_of_a_field": {clear(map[string]any{"cmd": "_auth", "id": "stranger", "pub": []any{1}}),
			clear(map[string]any{"cmd": "_auth", "id": map[string]any{}, "pub": pub})},
		"enc_is_neither_clear_nor_aes": {{"enc": "pub", "load": map[string]any{"cmd": "_auth"}, "version": 3}},
	}
}

// strangersAtTheWall says what needs no key to a node, and wants each refused for its reason.
func strangersAtTheWall(t *testing.T, m *play.Minion, n *lab.Node) {
	t.Helper()
	refused := func(reason string) float64 {
		return metricSum(t, n, "saltcluster_minion_refused_requests_total", `reason="`+reason+`"`)
	}
	for reason, cases := range strangerCases(m.PublicText()) {
		before := refused(reason)
		for _, msg := range cases {
			body, err := saltwire.AppendAny(nil, msg, saltwire.Wire)
			labtest.Must(t, err)
			z, err := m.Dial(t.Context(), n.Addr, "4506", "REQ")
			labtest.Must(t, err)
			labtest.Must(t, z.WriteMessage(nil, body))
			if reason != "enc_is_neither_clear_nor_aes" { // nobody answers that
				parts, err := z.ReadMessage()
				labtest.Must(t, err)
				if got := parts[len(parts)-1]; !bytes.Equal(got, saltwire.BadLoad()) && !bytes.Equal(got, []byte{0x80}) {
					t.Errorf("%s (%s): %s: %v is answered %q", n.Name, n.Master.Version, reason, msg["load"], got)
				}
			}
			_ = z.Close()
		}
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, reason+" to be counted", func(context.Context) error {
			if now := refused(reason); now != before+float64(len(cases)) {
				return fmt.Errorf("%s (%s): %v", n.Name, n.Master.Version, now-before)
			}
			return nil
		}))
	}
}

// admitPlayed has a played minion accepted on all nodes.
func admitPlayed(t *testing.T, c *lab.Cluster, m *play.Minion) {
	t.Helper()
	ctx := t.Context()
	if _, err := m.SignIn(ctx, c.Nodes[0].Addr); !errors.Is(err, play.ErrNotAccepted) {
		t.Fatalf("the first sign-in: %v", err)
	}
	for i, n := range c.Nodes {
		if i == 0 {
			labtest.Must(t, n.Master.AcceptKeys(ctx, time.Minute, m.ID))
		}
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the key on "+n.Name, func(context.Context) error {
			if s := n.Master.KeyState(m.ID); s != "minions" {
				return fmt.Errorf("it is in %q", s)
			}
			return nil
		}))
	}
}

// dismissPlayed deletes a key everywhere.
func dismissPlayed(t *testing.T, c *lab.Cluster, id string) {
	t.Helper()
	res, err := c.Nodes[0].Master.Run(t.Context(), "salt-key", "-y", "-d", id)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "the key to go from "+n.Name, func(context.Context) error {
			if s := n.Master.KeyState(id); s != "" {
				return fmt.Errorf("it is in %q", s)
			}
			return nil
		}))
	}
}

// busListeners write down what is on each master's bus.
func busListeners(t *testing.T, c *lab.Cluster) []*lab.Process {
	t.Helper()
	ctx := t.Context()
	var all []*lab.Process
	for _, n := range c.Nodes {
		p := n.NewProcess(lab.Spec{
			Name: "wall-events", Env: n.Master.Env(), Argv: []string{"/usr/bin/env", "salt-run", "state.event", "pretty=False"},
		})
		labtest.Must(t, p.Start(ctx))
		t.Cleanup(func() { _ = p.Kill() })
		all = append(all, p)
	}
	for i, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "listener on "+n.Name, func(ctx context.Context) error {
			if _, err := n.Master.Run(ctx, "salt", c.Minions[0].ID, "test.ping"); err != nil {
				return err
			}
			if !all[i].Logged("salt/job/") {
				return errors.New("nothing heard")
			}
			return nil
		}))
	}
	return all
}

// quietBuses waits for an event that fires on all masters, and wants nothing that is marked to have come before.
func quietBuses(t *testing.T, c *lab.Cluster, listeners []*lab.Process) {
	t.Helper()
	ctx := t.Context()
	end := "lab/count/all/wall-end"
	_, err := c.Nodes[0].Master.Pub(ctx, c.Minions[0].ID, "event.send", end)
	labtest.Must(t, err)
	for i, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the last event on "+n.Name, func(context.Context) error {
			if !listeners[i].Logged(end) {
				return errors.New("it is not there")
			}
			return nil
		}))
		if listeners[i].Logged(wallProbe) {
			t.Errorf("%s: what was refused is on the bus", n.Name)
		}
	}
}

// stockMinions of all versions ask for what they must not have: they are told so, nothing else becomes of it.
func stockMinions(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx := t.Context()
	sum := func(rule string) (n float64) {
		for _, node := range c.Nodes {
			n += wallFound(t, node, rule)
		}
		return n
	}
	tags, pushes := sum("event_tags"), sum("file_recv")
	got, err := c.Nodes[1].Master.Pub(ctx, "*", "cp.push", "/etc/hostname")
	labtest.Must(t, err)
	for _, m := range c.Minions {
		if got[m.ID] != false {
			t.Errorf("%s: cp.push answers %v", m.ID, got[m.ID])
		}
	}
	if n := sum("file_recv") - pushes; n != float64(len(c.Minions)) {
		t.Errorf("%v of %d pushes refused", n, len(c.Minions))
	}
	got, err = c.Nodes[2].Master.Pub(ctx, "*", "event.send", "salt/auth", "{probe: "+wallProbe[:4]+"}")
	labtest.Must(t, err)
	labtest.Must(t, lab.AnsweredBy(got, c.IDs()...))
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the events to be refused", func(context.Context) error {
		if n := sum("event_tags") - tags; n != float64(len(c.Minions)) {
			return fmt.Errorf("%v of %d refused", n, len(c.Minions))
		}
		return nil
	}))
}

// showWall asks every node what its rules have found, and which protocol its minions speak.
func showWall(t *testing.T, c *lab.Cluster) {
	t.Helper()
	ctx := t.Context()
	for _, n := range c.Nodes {
		var w adminapi.Wall
		labtest.Must(t, n.Daemon.CtlJSON(ctx, &w, "wall"))
		for _, r := range w.Rules {
			if r.Name == "event_tags" && (r.Refused == 0 || r.Mode != "enforce" || r.Minion == "") {
				t.Errorf("%s: %+v", n.Name, r)
			}
		}
		var p adminapi.Protocols
		labtest.Must(t, n.Daemon.CtlJSON(ctx, &p, "minions", "--protocol"))
		speak := map[string]int{}
		for _, m := range p.Minions {
			speak[m.ID] = m.Version
		}
		for _, id := range c.IDs() {
			if speak[id] != 3 {
				t.Errorf("%s: %s is said to speak %d (%v)", n.Name, id, speak[id], p.Unheard)
			}
		}
	}
}
