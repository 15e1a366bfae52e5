package wall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// keys are the minions of these tests.
var keys = map[string]bool{"web1": true, "db1": true, "syndic1": true, "4711": true, "web1:prod": true, "web1:7": true,
	"web1:1.5": true, "web1:True": true, "db1.lab": true}

func accepted(id string) bool { return keys[id] }

type fields = map[string]any

// load is a request of a minion as it is once opened: the fields of a command with what every request has.
func load(t testing.TB, id, cmd string, more fields) []byte {
	t.Helper()
	all := fields{"cmd": cmd, "id": id, "nonce": strings.Repeat("0f", 16), "ts": 1_700_000_000, "tok": "t"}
	for k, v := range more {
		all[k] = v
	}
	plain, err := saltwire.AppendAny(nil, all, saltwire.Wire)
	require.NoError(t, err)
	return plain
}

func request(t testing.TB, plain []byte) *Request {
	t.Helper()
	p, err := saltwire.PeekLoad(plain)
	require.NoError(t, err)
	return &Request{Peek: &p, Plain: plain, Size: len(plain)}
}

func list(v ...any) []any { return v }

func event(tag any, data ...any) map[string]any {
	e := fields{"data": fields{"n": 1}}
	if len(data) > 0 {
		e["data"] = data[0]
	}
	if tag != nil {
		e["tag"] = tag
	}
	return e
}

var (
	publishedJID = "20260102030405000001"
	unknownJID   = "20260102030405000002"
	futureJID    = "20991231235959000001" // nobody has published it either
	oldJID       = "20250102030405000001"
)

func jobs(jid, _ string) Knowledge {
	switch jid {
	case publishedJID:
		return Published
	case unknownJID, futureJID:
		return NotPublished
	}
	return Uncertain
}

// strict is every rule enforced, at a master with the defaults of stock.
func strict(p Policy) *Wall {
	return New(Config{
		Modes:  map[Rule]Mode{EventIDs: Enforce, ReturnJobs: Enforce, MineTargets: Enforce},
		Policy: p, Accepted: accepted, Job: jobs,
	})
}

// What stock minions and syndics of 3006, 3007 and 3008 send, from their sources: everything passes as it is, with
// every rule enforced.
func TestLegalTraffic(t *testing.T) {
	stock := Policy{Filters: true}
	above := Policy{Filters: true, Syndics: true}
	pushes := Policy{Filters: true, FileRecv: true}
	demand := Policy{Filters: true, OnDemand: []string{"libvirt"}}
	grains := fields{"id": "web1", "os": "Debian", "saltversion": "3008.3"}
	for _, c := range []struct {
		name, id, cmd string
		p             Policy
		f             fields
	}{
		{"start", "web1", "_minion_event", stock,
			fields{"tag": "salt/minion/web1/start", "data": "Minion web1 started at Sat", "pretag": nil}},
		{"legacy start", "web1", "_minion_event", stock,
			fields{"tag": "minion_start", "data": "x", "pretag": nil, "grains": grains}},
		{"own event of a site", "web1", "_minion_event", stock, fields{"tag": "site/deploy/done", "data": fields{}}},
		{"a reactor's own tag", "web1", "_minion_event", stock, fields{"tag": "salt/custom/db1/x", "data": fields{}}},
		{"beacon", "web1", "_minion_event", stock,
			fields{"tag": "salt/beacon/web1/load/", "data": fields{"1m": 3}, "pretag": nil}},
		{"beacons in a list", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/beacon/web1/load/"), event("salt/beacon/web1/inotify//etc/x")), "pretag": nil}},
		{"a site's own tag with the id of a job", "web1", "_minion_event", stock,
			fields{"tag": "deploy/job/" + publishedJID + "/host/db1", "data": fields{}}},
		{"what is behind a job and no minion", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/refresh/all", "data": fields{}}},
		{"progress of a state", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/prog/web1/0", "data": fields{"ret": true}}},
		{"start of a job", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/start/web1", "data": fields{}}},
		{"results of a state run", "web1", "_minion_event", stock,
			fields{"events": list(event("state_False_True"), event("state_True_True"))}},
		{"an error", "web1", "_minion_event", stock, fields{"tag": "_salt_error", "data": fields{"message": "x"}}},
		{"a git hook, as the guide to gitfs has it", "web1", "_minion_event", stock,
			fields{"tag": "salt/fileserver/gitfs/update", "data": fields{}}},
		{"a beacon with numbers for ids", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/beacon/web1/x/", fields{"id": 17}),
				event("salt/beacon/web1/y/", fields{"id": nil}))}},
		{"an event with a word of masters in it", "web1", "_minion_event", stock,
			fields{"tag": "app/salt/key", "data": fields{}}},
		{"an event about a build of another minion", "web1", "_minion_event", stock,
			fields{"events": list(event("ci/job/17/ret/db1", fields{"id": "db1"}))}},
		{"an event about a run", "web1", "_minion_event", stock, fields{"tag": "salt/runner", "data": fields{}}},
		{"start of a syndic", "syndic1", "_minion_event", above,
			fields{"tag": "salt/syndic/syndic1/start", "data": "x", "pretag": nil}},
		{"what a syndic hands on", "syndic1", "_minion_event", above, fields{"pretag": "syndic/syndic1", "events": list(
			event("salt/job/"+publishedJID+"/new", fields{"jid": publishedJID, "minions": list("low1")}), event(publishedJID),
			event("salt/auth"), event("salt/key"), event("salt/run/1/new"),
			event("salt/minion/low1/start"), event("salt/beacon/low1/load/"), event("salt/job/"+publishedJID+"/sub/low1/error/state.sls", fields{"id": "low1", "jid": publishedJID}))}},
		{"a site's own tag before others", "web1", "_minion_event", stock,
			fields{"pretag": "lab/pre", "events": list(event("lab/x"))}},

		{"return", "web1", "_return", stock, fields{"jid": publishedJID, "return": true, "retcode": 0, "success": true,
			"fun": "test.ping", "fun_args": list(), "out": "nested", "master_id": "m1"}},
		{"failed states", "web1", "_return", stock,
			fields{"jid": publishedJID, "fun": "state.highstate", "retcode": 2, "success": false, "return": fields{
				"file_|-/etc/salt/job_|-/etc/salt/job/x_|-managed": fields{"result": false, "comment": "minions", "name": "x",
					"changes": fields{}, "__id__": "y", "__sls__": "z"},
				"cmd_|-two\nlines_|-echo a\necho b\n_|-run": fields{"result": false},
				"pkg_|-c_|-c_|-installed":                   fields{"result": nil}, "salt_|-d_|-d_|-state": fields{"result": false},
			}}},
		{"states that could not be compiled", "web1", "_return", stock,
			fields{"jid": publishedJID, "fun": "state.sls", "retcode": 1, "return": list("Rendering SLS failed")}},
		{"states that would be a master's if they had failed", "web1", "_return", stock,
			fields{"jid": publishedJID, "fun": "state.sls", "retcode": 2,
				"return": fields{"salt/key_|-x": fields{"result": true}}}},
		{"what is no run of states", "web1", "_return", stock,
			fields{"jid": publishedJID, "fun": "site.check", "retcode": 2,
				"return": fields{"salt/key/x": fields{"result": false}}}},
		{"several functions", "web1", "_return", stock,
			fields{"jid": publishedJID, "fun": list("test.ping", "state.sls"), "retcode": fields{"test.ping": 0, "state.sls": 2},
				"return": fields{
					"test.ping": fields{"salt/key/x": fields{"result": false}},
					"state.sls": fields{"file_|-a_|-b_|-managed": fields{"result": false}},
				}}},
		{"return of salt-call", "web1", "_return", stock,
			fields{"jid": "req", "return": true, "fun": "test.ping", "fun_args": list()}},
		{"return of a schedule", "web1", "_return", stock,
			fields{"jid": "req", "return": true, "fun": "test.ping", "schedule": "ping", "pid": 7, "metadata": fields{}}},
		{"return of a schedule that is not cached", "web1", "_return", stock,
			fields{"jid": "nocache", "return": true, "fun": "test.ping", "schedule": "ping"}},
		{"return of a state that a schedule has queued", "web1", "_return", stock,
			fields{"jid": unknownJID, "return": fields{}, "fun": "state.apply"}},
		{"return of a schedule with a returner", "web1", "_return", stock,
			fields{"jid": unknownJID, "return": true, "fun": "test.ping", "schedule": "ping"}},
		{"return of a job from before", "web1", "_return", stock,
			fields{"jid": oldJID, "return": true, "fun": "test.ping", "fun_args": list()}},
		{"return of a job with an id of its own", "web1", "_return", stock,
			fields{"jid": "my-deploy_7", "return": true, "fun": "test.ping"}},
		{"signed return", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "fun": "test.ping", "sig": "s"}},
		{"return of a resource", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "fun": "test.ping", "resource_id": "switch7"}},
		{"return of a resource with a path for a name", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": "dc1/switch7"}},
		{"returns of a syndic", "syndic1", "_syndic_return", above, fields{"load": list(fields{
			"id": "syndic1", "jid": publishedJID, "fun": "test.ping", "arg": nil, "tgt": nil, "tgt_type": nil,
			"load": fields{"jid": publishedJID, "tgt": "*"},
			"return": fields{"low1": fields{"return": true, "retcode": 0, "success": true, "fun_args": list()},
				"syndic1": fields{"return": true}},
			"master_id": "m1",
		})}},
		{"returns of an old syndic", "syndic1", "_syndic_return", above,
			fields{"jid": publishedJID, "load": fields{}, "return": fields{"low1": fields{"return": true}}}},
		{"what publish.publish asks for", "web1", "pub_ret", stock, fields{"jid": publishedJID}},

		{"file", "web1", "_serve_file", stock, fields{"path": "top.sls", "saltenv": "base", "loc": 0, "gzip": 5}},
		{"file below", "web1", "_file_hash", stock, fields{"path": "a/../b/./c..d/..e", "saltenv": "base"}},
		{"file of a branch", "web1", "_file_find", stock, fields{"path": "init.sls", "saltenv": "feature/new-thing"}},
		{"file that was never there", "web1", "_file_hash_and_stat", stock, fields{"path": "", "saltenv": "__env__"}},
		{"file that is a number", "web1", "_serve_file", stock, fields{"path": 1.5, "saltenv": "base", "loc": 0}},
		{"files that begin with nothing", "web1", "_file_list", stock, fields{"prefix": nil, "saltenv": "base"}},
		{"environment that is a number", "web1", "_file_hash", stock, fields{"path": "x", "saltenv": 2019}},
		{"list of files", "web1", "_file_list", stock, fields{"saltenv": "base", "prefix": ""}},
		{"list of files below", "web1", "_file_list_emptydirs", stock, fields{"saltenv": "base", "prefix": "/formulas/"}},
		{"list of directories", "web1", "_dir_list", stock, fields{"saltenv": "base", "prefix": nil}},
		{"list of links", "web1", "_symlink_list", stock, fields{"saltenv": "base", "prefix": "x"}},
		{"environments", "web1", "_file_envs", stock, nil},
		{"file of an environment behind its name", "web1", "_file_find", stock,
			fields{"path": "a/b.sls?saltenv=feature/x&index=0", "saltenv": "base"}},
		{"file with a question mark in its name", "web1", "_file_hash", stock,
			fields{"path": "|what?.txt", "saltenv": "base"}},
		{"environment that begins with a dot", "web1", "_file_find", stock, fields{"path": "x", "saltenv": ".dev"}},
		{"list of one backend", "web1", "_file_list", stock, fields{"saltenv": "base", "fsbackend": "roots,git"}},
		{"list of some backends", "web1", "_file_list", stock, fields{"saltenv": "base", "fsbackend": list("roots", "git")}},
		{"list of all backends", "web1", "_file_list", stock, fields{"saltenv": "base", "fsbackend": nil, "back": nil}},
		{"pushed file with a part that is nothing", "web1", "_file_recv", pushes,
			fields{"path": list("etc", "", "fstab"), "loc": 0, "size": 3, "data": "abc"}},
		{"pushed file", "web1", "_file_recv", pushes,
			fields{"path": list("etc", "fstab"), "loc": 0, "size": 3, "data": "abc"}},

		{"pillar", "web1", "_pillar", stock, fields{"grains": grains, "saltenv": nil, "pillarenv": nil,
			"pillar_override": fields{}, "extra_minion_data": fields{}, "ver": "2"}},
		{"pillar of a branch", "web1", "_pillar", stock,
			fields{"grains": grains, "saltenv": "base", "pillarenv": "feature/x", "ver": "2", "clean_cache": true}},
		{"pillar on demand", "web1", "_pillar", demand,
			fields{"grains": grains, "saltenv": "base", "ext": fields{"libvirt": "_"}}},
		{"pillar without one on demand", "web1", "_pillar", stock, fields{"grains": grains, "saltenv": "base", "ext": nil}},

		{"mine", "web1", "_mine", stock, fields{"data": fields{"x": 1}, "clear": false}},
		{"mine of others", "web1", "_mine_get", stock, fields{"tgt": "*", "fun": "x", "tgt_type": "glob"}},
		{"options", "web1", "_master_opts", stock, nil},
		{"tops", "web1", "_master_tops", stock, fields{"opts": fields{"saltenv": "../x"}}},
		{"job for others", "web1", "minion_pub", stock, fields{"fun": "test.ping", "arg": list(), "tgt": "*", "ret": ""}},
		{"resources", "web1", "_register_resources", stock,
			fields{"resources": fields{"ssh": list("a", "dc1/switch7", 7), "dummy": nil, "none": 1},
				"resource_grains": fields{"ssh:a": fields{"os": "x"}, "ssh:dc1/switch7": fields{}}}},
		{"resources that are no map", "web1", "_register_resources", stock,
			fields{"resources": list("x"), "resource_grains": "x"}},
		{"no resources", "web1", "_register_resources", stock, fields{"resources": fields{}, "resource_grains": fields{}}},
		{"own tops", "web1", "_master_tops", stock,
			fields{"opts": fields{"id": "web1", "grains": fields{"id": "web1", "os": "x"}, "minions": list()}}},
		{"whom a site's own event is about", "web1", "_minion_event", stock,
			fields{"tag": "site/x", "data": fields{"minions": list("db1"), "id": "db1", "jid": "1"}}},
		{"the same in a list", "web1", "_minion_event", stock,
			fields{"events": list(event("site/x", fields{"id": "db1", "minions": list("db1"), "error": "x"}))}},
		{"a beacon in a list", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/beacon/web1/x/", fields{"id": "web1", "minions": 3, "error": "x"}),
				event("salt/beacon/web1/y/", fields{"id": "sda1"}))}},
		{"an event that is no map", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/beacon/web1/x/", "minions"))}},
		{"progress in a list", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/job/"+publishedJID+"/prog/web1/1", fields{"id": "web1", "ret": true}))}},
		{"a revoked key", "web1", "revoke_auth", stock, nil},
		{"a publication", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "arg": list(), "tgt": "*", "ret": "", "tgt_type": "glob", "tmo": 5, "form": "clean",
				"timeout": 60}},
		{"a publication with a number as text", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "arg": list(), "tgt": "*", "ret": "", "tmo": "30"}},
		{"a mine by a pillar", "web1", "_mine_get", stock,
			fields{"tgt": "role:db", "tgt_type": "pillar", "fun": "test.ping"}},
		{"a mine by many things", "web1", "_mine_get", stock,
			fields{"tgt": "I@role:db and G@os:Debian", "tgt_type": "compound", "fun": list("test.ping")}},
		{"a mine, as old minions say it", "web1", "_mine_get", stock,
			fields{"tgt": "*", "expr_form": "glob", "fun": "test.ping"}},
	} {
		w := strict(c.p)
		r := request(t, load(t, c.id, c.cmd, c.f))
		v := w.Check(r, func(rule Rule, reason string, enforced bool) {
			t.Errorf("%s: %s finds %s, enforced %t", c.name, rule, reason, enforced)
		})
		if v.Refused || v.Plain != nil {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// refusal is what is expected of a request that does not pass.
type refusal struct {
	rule   Rule
	reason string
	reply  []byte // nil: none
	bad    bool   // "bad load"
}

func TestRefused(t *testing.T) {
	stock := Policy{Filters: true}
	above := Policy{Filters: true, Syndics: true}
	pushes := Policy{Filters: true, FileRecv: true}
	tag := refusal{EventTags, "tag_of_masters", replyNil, false}
	otherID := refusal{EventIDs, "event_of_another_minion", replyNil, false}
	otherRet := refusal{ReturnIDs, "job_event_of_another_minion", replyNil, false}
	path := func(reply []byte) refusal { return refusal{FilePaths, "path_leads_elsewhere", reply, false} }
	env := func(reply []byte) refusal { return refusal{FilePaths, "environment_is_a_path", reply, false} }
	back := func(reply []byte) refusal { return refusal{FilePaths, "backend_is_left_out", reply, false} }
	push := refusal{FileRecv, "path_leads_elsewhere", replyFalse, false}
	whom := refusal{SyndicReturns, "minions_of_a_job", replyNil, false}
	resource := refusal{ReturnIDs, "resource_id_is_a_path", replyMap, false}
	tops := refusal{MasterTops, "classes_of_another_minion", replyMap, false}
	single := func(tag string) fields { return fields{"tag": tag, "data": fields{}} }
	states := func(name string, state fields) fields {
		state["result"], state["comment"] = false, "x"
		return fields{"jid": publishedJID, "fun": "state.sls", "retcode": 2,
			"return": fields{"file_|-a_|-b_|-managed": fields{"result": true}, name: state}}
	}
	with := func(f fields, name string, v any) fields { f[name] = v; return f }
	told := func(tag string, data any) fields { return fields{"events": list(event(tag, data))} }
	for _, c := range []struct {
		name, id, cmd string
		p             Policy
		f             fields
		want          refusal
	}{
		{"publication", "web1", "_minion_event", stock, single("salt/job/" + publishedJID + "/publish"), tag},
		{"new job", "web1", "_minion_event", stock, single("salt/job/" + publishedJID + "/new"), tag},
		{"new job of a syndic in its own name", "syndic1", "_minion_event", above,
			single("salt/job/" + publishedJID + "/new"), tag},
		{"return of a job", "web1", "_minion_event", stock, single("salt/job/x/y/return"), tag},
		{"key", "web1", "_minion_event", stock, single("salt/key"), tag},
		{"auth", "web1", "_minion_event", stock, single("salt/auth"), tag},
		{"run", "web1", "_minion_event", stock, single("salt/run/" + publishedJID + "/ret"), tag},
		{"cloud", "web1", "_minion_event", stock, single("salt/cloud/vm/creating"), tag},
		{"wheel", "web1", "_minion_event", stock, single("salt/wheel/" + publishedJID + "/ret"), tag},
		{"presence", "web1", "_minion_event", stock, single("salt/presence/present"), tag},
		{"web hook", "web1", "_minion_event", stock, single("salt/netapi/hook/deploy"), tag},
		{"native cluster", "web1", "_minion_event", stock, single("salt/cluster/x"), tag},
		{"peer of a native cluster", "web1", "_minion_event", stock, single("cluster/peer/join"), tag},
		{"our cluster", "web1", "_minion_event", stock, single("cluster/event/m1/x"), tag},
		{"rotation", "web1", "_minion_event", stock, single("key"), tag},
		{"rotation of a cluster", "web1", "_minion_event", stock, single("rotate_cluster_aes_key"), tag},
		{"a tag that ends early", "web1", "_minion_event", stock, single("salt/x\n\n"), tag},
		{"return of another minion", "web1", "_minion_event", stock, single("salt/job/" + publishedJID + "/ret/db1"),
			otherRet},
		{"progress of another minion", "web1", "_minion_event", stock, single("salt/job/" + publishedJID + "/prog/db1/3"),
			otherRet},
		{"another minion under a word of no Salt", "web1", "_minion_event", stock,
			single("salt/job/" + publishedJID + "/refresh/db1"), otherRet},
		{"the same below a syndic", "web1", "_minion_event", stock, single("syndic/job/" + publishedJID + "/refresh/db1/x"),
			otherRet},
		{"failed state of another minion", "web1", "_minion_event", stock,
			single("salt/job/" + publishedJID + "/sub/db1/error/state.sls"), otherRet},
		{"failed state of another minion, by a tag made of two", "web1", "_minion_event", stock,
			fields{"pretag": "salt/job/" + publishedJID, "events": list(event("sub/db1/error/state.sls"))}, otherRet},
		{"failed state of another minion, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/job/"+publishedJID+"/sub/db1/error/state.sls",
				fields{"id": "low1"}))}, otherRet},
		{"start of another minion", "web1", "_minion_event", stock, single("salt/minion/db1/start"), otherID},
		{"beacon of another minion", "web1", "_minion_event", stock, single("salt/beacon/db1/load/"), otherID},
		{"only such events in a list", "web1", "_minion_event", stock,
			fields{"events": list(event("salt/key"), event("salt/auth"))}, tag},
		{"an event without a tag", "web1", "_minion_event", stock, fields{"events": list(event(nil))}, tag},
		{"an event with a list for a tag", "web1", "_minion_event", stock, fields{"events": list(event(list("salt", "key")))},
			tag},
		{"an event with a list for a tag, below a word", "web1", "_minion_event", stock,
			fields{"pretag": "salt", "events": list(event(list("run", "1", "ret")))}, tag},
		{"an event with a list for a tag, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event(list("salt", "job", publishedJID, "ret", "db1"),
				fields{"id": "low1"}))}, tag},
		{"an event with a number for a tag", "web1", "_minion_event", stock,
			fields{"pretag": "lab", "events": list(event(7))}, tag},
		{"a list that is none", "web1", "_minion_event", stock, fields{"events": list("salt/key")}, tag},
		{"a tag made of two", "web1", "_minion_event", stock, fields{"pretag": "salt/job", "events": list(event("1/new"))},
			tag},
		{"a rotation of keys by a tag made of two", "web1", "_minion_event", stock,
			fields{"pretag": "rotate_aes_key", "events": list(event("x"))}, tag},
		{"a tag made of two, by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "salt/job", "events": list(event("1/new"))}, tag},
		{"a tag before others that is a list", "web1", "_minion_event", stock,
			fields{"pretag": list("salt"), "events": list(event("x"))}, tag},
		{"a syndic's at a master without syndics", "web1", "_minion_event", stock,
			fields{"pretag": "syndic/web1", "events": list(event("salt/auth"))}, tag},
		{"a syndic's at a master that does not filter", "syndic1", "_minion_event", Policy{Syndics: true},
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/key"))}, tag},

		{"reactors", "web1", "_minion_event", stock, single("salt/reactors/manage/add"), tag},
		{"reactors under a tag of a site", "web1", "_minion_event", stock, single("site/salt/reactors/manage/delete"), tag},
		{"reactors by a tag made of two", "web1", "_minion_event", stock,
			fields{"pretag": "salt/reactors", "events": list(event("manage/list"))}, tag},
		{"new grains of a resource", "web1", "_minion_event", stock, single("resource/refresh/db1"), tag},
		{"what is marked as a peer's", "web1", "_minion_event", stock,
			fields{"tag": "site/x", "data": fields{}, "__peer_id": "m2"}, tag},
		{"what is marked as a peer's in a list", "web1", "_minion_event", stock, told("site/x", fields{"__peer_id": "m2"}),
			tag},
		{"what ends a master's event_return", "web1", "_minion_event", stock, single("salt/event/exit"), tag},
		{"what ends it, by a tag made of two", "web1", "_minion_event", stock,
			fields{"pretag": "salt/event", "events": list(event("exit"))}, tag},
		{"another's return that salt-api waits for", "web1", "_minion_event", stock,
			told("syndic/job/"+publishedJID+"/ret/db1", fields{"id": "db1", "return": true}), otherRet},
		{"another's return that salt-api waits for, under the own tag", "web1", "_minion_event", stock,
			told("syndic/job/"+publishedJID+"/ret/web1", fields{"id": "db1", "return": true}), otherRet},
		{"another's return that salt-api waits for, alone", "web1", "_minion_event", stock,
			single("syndic/job/" + publishedJID + "/ret/db1"), otherRet},
		{"another's return that a syndic beside the master takes", "web1", "_minion_event", stock,
			told("x/job/"+publishedJID+"_1/ret/x", fields{"id": "db1", "return": true}), otherRet},
		{"start of another syndic", "syndic1", "_minion_event", above, single("salt/syndic/web1/start"), otherID},
		{"start in another's name, under the own tag", "web1", "_minion_event", stock,
			told("salt/minion/web1/start", fields{"id": "db1"}), otherID},
		{"start in another's name, under no minion's tag", "web1", "_minion_event", stock,
			told("minion_start", fields{"id": "db1"}), otherID},
		{"beacon in another's name, under the own tag", "web1", "_minion_event", stock,
			told("salt/beacon/web1/load/", fields{"id": "db1"}), otherID},
		{"a return in another's name, under the own tag", "web1", "_minion_event", stock,
			told("salt/job/"+publishedJID+"/ret/web1", fields{"id": "db1", "return": true}), otherRet},
		{"a return in another's name, under no tag of returns", "web1", "_minion_event", stock,
			told("salt/job/"+publishedJID+"/retx/y", fields{"id": "db1", "return": true}), otherRet},
		{"a return in the name of a resource that is a minion", "web1", "_minion_event", stock,
			told("salt/job/"+publishedJID+"/ret/web1", fields{"id": "web1", "resource_id": "db1", "return": true}), otherRet},
		{"the same, alone", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/ret/web1", "data": fields{}, "resource_id": "db1",
				"return": true}, otherRet},
		{"a return in the name of a list", "web1", "_minion_event", stock,
			told("salt/job/"+publishedJID+"/ret/web1", fields{"id": list("db1")}), otherRet},
		{"a return in another's name by a tag made of two", "web1", "_minion_event", stock,
			fields{"pretag": "salt/job", "events": list(event("x", fields{"id": "db1", "return": true}))}, otherRet},
		{"an event of a job without data that bears another's name", "web1", "_minion_event", stock,
			fields{"events": list(fields{"tag": "salt/job/x/ret/web1", "id": "db1"})}, otherRet},
		{"whom a job is for", "web1", "_minion_event", stock,
			told("site/x", fields{"jid": publishedJID, "minions": list("db1")}), whom},
		{"whom a job is for, without a tag before it at a master of syndics", "web1", "_minion_event", above,
			told("site/x", fields{"jid": publishedJID, "minions": list("db1")}), whom},
		{"another's return behind a word of a minion's own, at a master of syndics", "web1", "_minion_event", above,
			fields{"pretag": "x", "events": list(event("salt/job/"+publishedJID+"/ret/db1",
				fields{"id": "db1", "return": true}))}, otherRet},
		{"another's return behind another syndic's word", "web1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/job/"+publishedJID+"/ret/db1",
				fields{"id": "db1", "return": true}))}, otherRet},
		{"another's return, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/job/"+publishedJID+"/ret/db1",
				fields{"id": "db1", "return": true}))}, otherRet},
		{"another's return under its own tag, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/job/"+publishedJID+"/ret/low1",
				fields{"id": "db1", "return": true}))}, otherRet},
		{"start of another minion, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/minion/db1/start"))}, otherID},
		{"what is marked as a peer's, handed on by a syndic", "syndic1", "_minion_event", above,
			fields{"pretag": "syndic/syndic1", "events": list(event("salt/minion/low1/start", fields{"__peer_id": "m2"}))}, tag},
		{"whom a job is for, under what looks like a syndic's tag", "web1", "_minion_event", stock,
			fields{"tag": "syndic/x/" + publishedJID, "data": fields{}, "error": "no"}, whom},
		{"whom a job misses, under what ends like a job's tag", "web1", "_minion_event", stock,
			told("y/salt/job/"+publishedJID, fields{"missing": list("db1")}), whom},
		{"a number that is another minion, in a beacon", "web1", "_minion_event", stock,
			told("salt/beacon/web1/load/", fields{"id": 4711}), otherID},
		{"whom a job misses", "web1", "_minion_event", stock,
			told("salt/job/"+publishedJID+"/x", fields{"missing": list("db1")}), whom},
		{"whom a job is for, alone", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/x", "data": fields{}, "minions": list("db1")}, whom},
		{"an error of a job, alone", "web1", "_minion_event", stock,
			fields{"tag": "salt/job/" + publishedJID + "/x", "data": fields{}, "error": "x"}, whom},

		{"a failed state with a master's name", "web1", "_return", stock, states("salt/run/1/ret_|-a_|-b_|-x", fields{}),
			tag},
		{"a failed state with a name that reactors listen to", "web1", "_return", stock,
			states("a_|-salt/reactors/manage/add", fields{}), tag},
		{"a failed state with one part to its name", "web1", "_return", stock, states("salt/key/", fields{}), tag},
		{"a failed state with an end in its name", "web1", "_return", stock, states("a_|-b\n\n", fields{}), tag},
		{"a failed state that is another minion's return", "web1", "_return", stock,
			states("salt/job/"+publishedJID+"/ret/db1_|-a_|-lab", fields{}), otherRet},
		{"a failed state that is another minion's start", "web1", "_return", stock,
			states("salt/minion/db1_|-lab/start", fields{}), otherID},
		{"a failed state in another minion's name", "web1", "_return", stock,
			states("salt/job/"+publishedJID+"/x_|-y", fields{"id": "db1"}), otherRet},
		{"a failed state that says whom a job is for", "web1", "_return", stock,
			states("x_|-y", fields{"jid": publishedJID, "minions": list("db1")}), whom},
		{"a failed state that says whom its job is for", "web1", "_return", stock,
			states("x_|-y", fields{"minions": list("db1")}), whom},
		{"a failed state that says whom its job misses", "web1", "_return", stock,
			states("x_|-y", fields{"missing": list("db1")}), whom},
		{"a failed state that is marked as a peer's", "web1", "_return", stock, states("x_|-y", fields{"__peer_id": "m2"}),
			tag},
		{"a failed state of a highstate", "web1", "_return", stock,
			with(with(states("salt/wheel/1_|-x", fields{}), "fun", "state.highstate"), "retcode", "x"), tag},
		{"a failed state of one of several functions", "web1", "_return", stock,
			with(with(with(states("x", fields{}), "fun", list("test.ping", "state.sls")), "retcode", list(0, 1)),
				"return", list(true, fields{"salt/run/x_|-y": fields{"result": false}})), tag},
		{"a failed state of one of several functions, by name", "web1", "_return", stock,
			with(with(with(states("x", fields{}), "fun", list("test.ping", "state.sls")), "retcode", fields{"state.sls": 1}),
				"return", fields{"state.sls": fields{"salt/run/x_|-y": fields{"result": false}}}), tag},
		{"a failed state that a syndic brings", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID, "fun": "state.sls",
				"return": fields{"low1": fields{"retcode": 1, "return": fields{"salt/run/x_|-y": fields{"result": false}}}}})}, tag},
		{"a failed state of a function that stands with it", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": fields{"fun": "state.sls", "retcode": 1,
					"return": fields{"salt/minion/db1_|-lab/start": fields{"result": false}}}}})}, otherID},
		{"a return that is marked as a peer's", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "__peer_id": "m2"}, tag},
		{"a return under a name of the job cache's own", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": "nocache"}, refusal{ReturnIDs, "name_of_the_job_cache",
				replyNil, false}},
		{"a return of a minion that is called so", "endtime", "_return", stock, fields{"jid": publishedJID, "return": true},
			refusal{ReturnIDs, "name_of_the_job_cache", replyNil, false}},
		{"a syndic's return under such a name", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"jid": fields{"return": true}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"a return that says whom its job is for", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "minions": list("db1")}, whom},
		{"a return that is an error", "web1", "_return", above, fields{"jid": publishedJID, "return": true, "error": "x"},
			whom},
		{"returns marked as a peer's", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": fields{"return": true,
					"__peer_id": "m2"}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns that say whom their job is for", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": fields{"return": true,
					"minions": list("db1")}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns with a resource inside", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": fields{"return": true,
					"resource_id": "db1"}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns that are lists of pairs", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": list(list("id",
					"db1"))}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"a resource with a path for a name", "web1", "_register_resources", stock,
			fields{"resources": fields{"ssh": list("../../x")}}, resource},
		{"a resource with a list for a name", "web1", "_register_resources", stock,
			fields{"resources": fields{"ssh": list(list("x"))}}, resource},
		{"resources that are no list", "web1", "_register_resources", stock, fields{"resources": fields{"ssh": "x"}},
			resource},
		{"grains of a resource that is a path", "web1", "_register_resources", stock,
			fields{"resources": fields{}, "resource_grains": fields{"../grains/db1": fields{}}}, resource},
		{"grains of a resource that leads out", "web1", "_register_resources", stock,
			fields{"resources": fields{}, "resource_grains": fields{"ssh:a/../../x": fields{}}}, resource},
		{"grains of a resource at the root", "web1", "_register_resources", stock,
			fields{"resources": fields{}, "resource_grains": fields{"/x": fields{}}}, resource},
		{"grains of a resource with an end inside", "web1", "_register_resources", stock,
			fields{"resources": fields{}, "resource_grains": fields{"ssh:x\x00": fields{}}}, resource},
		{"classes of another minion", "web1", "_master_tops", stock, fields{"opts": fields{"id": "db1"}}, tops},
		{"classes by the grains of another minion", "web1", "_master_tops", stock,
			fields{"opts": fields{"id": "web1", "grains": fields{"id": "db1"}}}, tops},
		{"a publication that is waited for without an end", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "arg": list(), "tgt": "*", "ret": "", "timeout": 1 << 40}, refusal{Budget,
				"waits_too_long", replyMap, false}},
		{"a publication that is waited for too long", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "arg": list(), "tgt": "*", "ret": "", "tmo": 301}, refusal{Budget, "waits_too_long",
				replyMap, false}},
		{"a publication that is waited for by a fraction too long", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "tmo": 1e300}, refusal{Budget, "waits_too_long", replyMap, false}},
		{"a publication that is waited for too long, in words", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "tmo": " 1_000_000 "}, refusal{Budget, "waits_too_long", replyMap, false}},
		{"a publication that is waited for too long, in other digits", "web1", "minion_publish", stock,
			fields{"fun": "test.ping", "tmo": "\u0669\u0669\u0669\u0669"}, refusal{Budget, "waits_too_long", replyMap, false}},
		{"a mine by a part of a pillar", "web1", "_mine_get", stock,
			fields{"tgt": "a:^x", "tgt_type": "pillar_pcre", "fun": "test.ping"}, refusal{MineTargets, "pillar_of_others",
				replyMap, false}},
		{"a mine by a part of a pillar, as old minions say it", "web1", "_mine_get", stock,
			fields{"tgt": "a:^x", "expr_form": "pillar_pcre", "fun": "test.ping"}, refusal{MineTargets, "pillar_of_others",
				replyMap, false}},
		{"classes of a list", "web1", "_master_tops", stock, fields{"opts": fields{"id": list("db1")}}, tops},
		{"classes of another minion, as a database reads it", "web1", "_master_tops", stock,
			fields{"opts": fields{"id": "DB1"}}, tops},

		{"job id that is a path", "web1", "pub_ret", stock, fields{"jid": "../../../proc/self/fd/0"},
			refusal{JobIDs, "job_id_is_a_path", replyRaised, false}},
		{"job id that is a list", "web1", "pub_ret", stock, fields{"jid": list("..")},
			refusal{JobIDs, "job_id_is_no_text", replyRaised, false}},
		{"return with a map for one", "web1", "_return", stock, fields{"jid": fields{}, "return": true},
			refusal{JobIDs, "job_id_is_no_text", replyNil, false}},
		{"returns of a job that is a list", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": list("x"), "return": fields{}})}, refusal{ReturnIDs,
				"job_id_is_no_text", replyNil, false}},
		{"push to nothing", "web1", "_file_recv", pushes, fields{"path": list(), "loc": 0, "data": "x"},
			refusal{FileRecv, "path_leads_elsewhere", replyRaised, false}},
		{"push to the directory itself", "web1", "_file_recv", pushes, fields{"path": list(""), "loc": 0, "data": "x"},
			refusal{FileRecv, "path_leads_elsewhere", replyRaised, false}},
		{"push to a number", "web1", "_file_recv", pushes, fields{"path": list("etc", 5), "loc": 0, "data": "x"},
			refusal{FileRecv, "path_leads_elsewhere", replyRaised, false}},
		{"return with one", "web1", "_return", stock, fields{"jid": "a/b", "return": true},
			refusal{JobIDs, "job_id_is_a_path", replyNil, false}},
		{"state of a time to come", "web1", "_return", stock,
			fields{"jid": futureJID, "return": fields{}, "fun": "state.apply"}, refusal{ReturnJobs, "job_was_not_published",
				replyNil, false}},
		{"state that nobody published", "web1", "_return", stock,
			fields{"jid": unknownJID, "return": fields{}, "fun": "state.apply", "master_id": "m1"}, refusal{ReturnJobs,
				"job_was_not_published", replyNil, false}},
		{"job that nobody published", "web1", "_return", stock, fields{"jid": unknownJID, "return": true},
			refusal{ReturnJobs, "job_was_not_published", replyNil, false}},
		{"return as a resource that is a minion", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": "db1"}, refusal{ReturnIDs, "return_of_another_minion",
				replyNil, false}},
		{"return as a resource below a minion", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": "db1/x"}, refusal{ReturnIDs, "return_of_another_minion",
				replyNil, false}},
		{"return as a resource that climbs", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": "a/../../x"}, refusal{ReturnIDs, "resource_id_is_a_path",
				replyNil, false}},
		{"return as a resource that is a number", "web1", "_return", stock,
			fields{"jid": publishedJID, "return": true, "resource_id": 7}, refusal{ReturnIDs, "resource_id_is_a_path", replyNil,
				false}},
		{"returns for others", "web1", "_syndic_return", stock,
			fields{"load": list(fields{"id": "web1", "jid": publishedJID,
				"return": fields{"low1": fields{"return": true}}})}, refusal{SyndicReturns, "order_masters_is_off", replyNil, false}},
		{"returns for a minion of the cluster", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"db1": fields{"return": true}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns with an id inside", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"low1": fields{"return": true,
					"id": "x"}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns of a path", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": publishedJID,
				"return": fields{"../x": fields{"return": true}}})}, refusal{ReturnIDs, "return_of_another_minion", replyNil, false}},
		{"returns of another syndic", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "../x", "jid": publishedJID, "return": fields{}})}, refusal{ReturnIDs,
				"syndic_return_of_another_syndic", replyNil, false}},
		{"returns of a job that is a path", "syndic1", "_syndic_return", above,
			fields{"load": list(fields{"id": "syndic1", "jid": "../x", "return": fields{}})}, refusal{JobIDs, "job_id_is_a_path",
				replyNil, false}},

		{"file outside", "web1", "_serve_file", stock, fields{"path": "../../etc/shadow", "saltenv": "base", "loc": 0},
			path(replyServe)},
		{"file outside in the end", "web1", "_file_hash", stock, fields{"path": "a/../../etc/shadow", "saltenv": "base"},
			path(replyEmpty)},
		{"file at the root", "web1", "_file_find", stock, fields{"path": "/etc/shadow", "saltenv": "base"}, path(replyFind)},
		{"file outside behind a bar", "web1", "_file_find", stock, fields{"path": "|..", "saltenv": "base"}, path(replyFind)},
		{"file at the root behind bars", "web1", "_serve_file", stock,
			fields{"path": "||/etc/shadow", "saltenv": "base", "loc": 0}, path(replyServe)},
		{"file that is none", "web1", "_file_hash_and_stat", stock, fields{"path": list("x"), "saltenv": "base"},
			path(replyStat)},
		{"file that is none, to be served", "web1", "_serve_file", stock, fields{"path": list(), "saltenv": "base", "loc": 0},
			path(replyRaised)},
		{"file that is none, to be found", "web1", "_file_find", stock, fields{"path": list("../x"), "saltenv": "base"},
			path(replyRaised)},
		{"no file that is none, to be found", "web1", "_file_find", stock, fields{"path": list(), "saltenv": "base"},
			path(replyFind)},
		{"file with an end inside", "web1", "_serve_file", stock, fields{"path": "x\x00y", "saltenv": "base", "loc": 0},
			path(replyServe)},
		{"environment outside", "web1", "_file_list", stock, fields{"saltenv": "../../x", "prefix": ""}, env(replyList)},
		{"environment at the root", "web1", "_symlink_list", stock, fields{"saltenv": "/tmp"}, env(replyMap)},
		{"environment outside in the end", "web1", "_dir_list", stock, fields{"saltenv": "a/.."}, env(replyList)},
		{"environment that is a list", "web1", "_file_find", stock, fields{"path": "x", "saltenv": list("../x")},
			env(replyRaised)},
		{"environment under its old name", "web1", "_file_find", stock, fields{"path": "x", "env": "../x"}, env(replyFind)},
		{"list outside", "web1", "_file_list", stock, fields{"saltenv": "base", "prefix": "../x"},
			refusal{FilePaths, "prefix_leads_elsewhere", replyList, false}},
		{"environment that is where all are", "web1", "_file_list", stock, fields{"saltenv": ".", "prefix": ""},
			env(replyList)},
		{"environment without a name", "web1", "_file_list", stock, fields{"saltenv": "", "prefix": ""}, env(replyList)},
		{"environment outside, behind a file's name", "web1", "_file_hash", stock,
			fields{"path": "top.sls?saltenv=..", "saltenv": "base"}, path(replyEmpty)},
		{"environment outside in the end, behind a file's name", "web1", "_file_find", stock,
			fields{"path": "top.sls?index=0&saltenv=a/../..", "saltenv": "base"}, path(replyFind)},
		{"environment without a name, behind a file's", "web1", "_file_find", stock,
			fields{"path": "top.sls?saltenv=", "saltenv": "base"}, path(replyFind)},
		{"file outside before a question", "web1", "_serve_file", stock,
			fields{"path": "..?x=1", "saltenv": "base", "loc": 0}, path(replyServe)},
		{"a backend left out", "web1", "_file_list", stock, fields{"saltenv": "base", "fsbackend": "-roots"},
			back(replyList)},
		{"a backend left out of some", "web1", "_symlink_list", stock, fields{"saltenv": "base", "fsbackend": "git,-roots"},
			back(replyMap)},
		{"a backend left out in a list", "web1", "_dir_list", stock, fields{"saltenv": "base", "fsbackend": list("-roots")},
			back(replyList)},
		{"a backend left out of the environments", "web1", "_file_envs", stock, fields{"back": list("-roots")},
			back(replyList)},
		{"backends that are a map", "web1", "_file_envs", stock, fields{"back": fields{"roots": true}}, back(replyList)},
		{"pillar of where all are", "web1", "_pillar", stock, fields{"grains": fields{}, "pillarenv": "./"},
			refusal{FilePaths, "environment_is_a_path", nil, true}},
		{"pillar kept as another minion's", "web1", "_pillar", stock, fields{"grains": fields{}, "pillarenv": "prod"},
			refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar kept as another minion's by its saltenv", "web1", "_pillar", stock,
			fields{"grains": fields{}, "saltenv": "prod"}, refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar kept as that of a number", "web1", "_pillar", stock, fields{"grains": fields{}, "pillarenv": 7},
			refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar kept as that of a fraction", "web1", "_pillar", stock, fields{"grains": fields{}, "pillarenv": 1.5},
			refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar kept as that of a word of Python's", "web1", "_pillar", stock, fields{"grains": fields{}, "saltenv": true},
			refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar kept as another minion's by its old saltenv", "web1", "_pillar", stock,
			fields{"grains": fields{}, "env": "prod"}, refusal{FilePaths, "environment_of_another_minion", nil, true}},
		{"pillar outside", "web1", "_pillar", stock, fields{"grains": fields{}, "pillarenv": "../../x"},
			refusal{FilePaths, "environment_is_a_path", nil, true}},

		{"push to a master that takes none", "web1", "_file_recv", stock,
			fields{"path": list("etc", "fstab"), "loc": 0, "data": "x"}, refusal{FileRecv, "file_recv_is_off", replyFalse,
				false}},
		{"push outside", "web1", "_file_recv", pushes, fields{"path": list("..", "x"), "loc": 0, "data": "x"}, push},
		{"push outside within a part", "web1", "_file_recv", pushes, fields{"path": list("a/../../x"), "loc": 0, "data": "x"},
			push},
		{"push to the root", "web1", "_file_recv", pushes, fields{"path": list("", "etc"), "loc": 0, "data": "x"}, push},
		{"push to a text", "web1", "_file_recv", pushes, fields{"path": "x", "loc": 0, "data": "x"}, push},
	} {
		w := strict(c.p)
		r := request(t, load(t, c.id, c.cmd, c.f))
		heard := 0
		v := w.Check(r, func(rule Rule, reason string, enforced bool) {
			if heard++; rule != c.want.rule || reason != c.want.reason || !enforced {
				t.Errorf("%s: %s finds %s, enforced %t", c.name, rule, reason, enforced)
			}
		})
		if !v.Refused || v.Rule != c.want.rule || v.Reason != c.want.reason || !bytes.Equal(v.Reply, c.want.reply) ||
			v.BadLoad != c.want.bad || heard != 1 {
			t.Errorf("%s: %+v, heard of %d times", c.name, v, heard)
		}
		passes(t, c.name, c.p, r)
	}
	// What a syndic brings for another node's master is that one's to judge.
	w := New(Config{Own: func(id string) bool { return id == "m1" }})
	for id, refused := range map[string]bool{"m1": true, "m2": false} {
		r := request(t, load(t, "web1", "_syndic_return",
			fields{"load": list(fields{"id": "web1", "jid": publishedJID, "master_id": id, "return": fields{}})}))
		if v := w.Check(r, nil); v.Refused != refused {
			t.Errorf("for %s: %+v", id, v)
		}
		if r.Relayed = true; !w.Check(r, nil).Refused {
			t.Errorf("relayed for %s: not refused", id)
		}
	}
}

// passes wants a request to pass when its rules only log, or are off.
func passes(t *testing.T, name string, p Policy, r *Request) {
	t.Helper()
	for _, mode := range []Mode{Log, Off} {
		modes := map[Rule]Mode{}
		for i := range Rules {
			modes[Rule(i)] = mode
		}
		w := New(Config{Modes: modes, Policy: p, Accepted: accepted, Job: jobs})
		heard := 0
		if v := w.Check(r, func(Rule, string, bool) { heard++ }); v.Refused || v.Plain != nil {
			t.Errorf("%s: %s: %+v", name, mode, v)
		}
		if (heard > 0) != (mode == Log) {
			t.Errorf("%s: %s: heard of %d times", name, mode, heard)
		}
	}
}

// Data may have numbers for names, and what stands beside them counts.
func TestDataWithNumbersForNames(t *testing.T) {
	data := func(more string) *Request {
		plain := load(t, "web1", "_minion_event", fields{"events": list(event("lab/x", "DATA"))})
		return request(t, bytes.Replace(plain, []byte("\xa4DATA"), []byte(more), 1))
	}
	w := strict(Policy{})
	if v := w.Check(data("\x82\x07\xa7minions\xa1n\x01"), nil); v.Refused || v.Plain != nil {
		t.Errorf("%+v", v)
	}
	if v := w.Check(data("\x83\x07\x01\xa3jid\xa1j\xa7minions\x90"), nil); v.Reason != "minions_of_a_job" {
		t.Errorf("%+v", v)
	}
}

// A key is revoked by an id that stands for itself alone.
func TestRevokedByAPattern(t *testing.T) {
	w := strict(Policy{})
	for id, bad := range map[string]bool{"web1": false, "web-1.example.org": false, "*": true, "web?": true,
		"web[12]": true, "x,db1": true} {
		v := w.Check(request(t, load(t, id, "revoke_auth", nil)), nil)
		if v.Refused != bad || bad && (v.Reason != "id_is_no_plain_name" || !bytes.Equal(v.Reply, replyFalse)) {
			t.Errorf("%s: %+v", id, v)
		}
	}
	if n := w.Found()[Identity].Refused; n != 4 {
		t.Errorf("counted %d", n)
	}
}

func TestCheck_CutEventsFromList(t *testing.T) {
	w := strict(Policy{Filters: true})
	r := request(t, load(t, "web1", "_minion_event", fields{"pretag": nil, "events": list(
		event("lab/a"), event("salt/key"), event("lab/b"), event("salt/job/1/ret/db1"), event("salt/minion/web1/start"))}))
	v := w.Check(r, nil)
	if v.Refused || v.Plain == nil || v.Rule != EventTags {
		t.Fatalf("%+v", v)
	}
	p, err := saltwire.PeekLoad(v.Plain)
	require.NoError(t, err)
	tags, err := saltwire.EventTags(p.Events)
	if err != nil || strings.Join(tags, " ") != "lab/a lab/b salt/minion/web1/start" {
		t.Errorf("%v, %v", tags, err)
	}
	if p.ID != "web1" || p.Nonce != r.Peek.Nonce || string(p.Tok) != string(r.Peek.Tok) {
		t.Errorf("%+v", p)
	}
	// A rule that only logs cuts nothing, and does not keep another one from cutting.
	w = New(Config{Modes: map[Rule]Mode{EventTags: Log}, Accepted: accepted})
	if v = w.Check(r, nil); v.Rule != ReturnIDs || v.Plain == nil {
		t.Fatalf("%+v", v)
	}
	if p, err = saltwire.PeekLoad(v.Plain); err != nil {
		t.Fatal(err)
	}
	if tags, _ = saltwire.EventTags(p.Events); len(tags) != 4 {
		t.Errorf("%v", tags)
	}
}

// What stands before each tag of a list is looked at with each: a long one in front of many would keep a processor for
// minutes.
func TestLongBeforeManyTags(t *testing.T) {
	tags := make([]any, 20_000)
	for i := range tags {
		tags[i] = fields{"tag": "a"}
	}
	for _, c := range []struct {
		before  int
		refused bool
	}{{maxPretag, false}, {maxPretag + 1, true}, {8 << 20, true}} {
		plain := load(t, "web1", "_minion_event", fields{"pretag": strings.Repeat("x", c.before), "events": tags})
		for name, w := range map[string]*Wall{"enforced": strict(Policy{}), "off": New(Config{Modes: map[Rule]Mode{
			EventTags: Off, EventIDs: Off, ReturnIDs: Off, SyndicReturns: Off,
		}})} {
			if v := w.Check(request(t, plain), nil); v.Refused != (c.refused && name == "enforced") {
				t.Errorf("%d bytes before %d tags, %s: %+v", c.before, len(tags), name, v)
			}
		}
	}
}

// Each return of many functions is looked at once, however many there are.
func TestManyFunctions(t *testing.T) {
	const many = 100_000
	funs, list := make([]any, many), make([]any, many)
	for i := range funs {
		funs[i], list[i] = "state.sls", fields{}
	}
	bad := fields{"salt/run/a_|-b_|-c_|-d": fields{"result": false}}
	states := fields{}
	for i := range many {
		states[fmt.Sprint("a_|-b_|-c_|-", i)] = fields{"result": false}
	}
	last := append(append([]any{}, list[1:]...), bad)
	w := strict(Policy{})
	for _, c := range []struct {
		name    string
		ret     any
		refused bool
	}{
		{"a list", list, false}, {"a list with a bad one at its end", last, true},
		{"a map", fields{"state.sls": states}, false},
		{"a map with a bad one", fields{"state.sls": fields{"salt/run/a_|-b_|-c_|-d": fields{"result": false}}}, true},
	} {
		r := request(t, load(t, "web1", "_return",
			fields{"jid": publishedJID, "fun": funs, "retcode": []any{1}, "return": c.ret}))
		if v := w.Check(r, nil); v.Refused != c.refused {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
}

// A minion that says it manages more than any does makes masters write that many files.
func TestTooManyResources(t *testing.T) {
	names := func(n int) (managed []any, grains fields) {
		grains = fields{}
		for i := range n {
			name := fmt.Sprint("r", i)
			managed, grains["ssh:"+name] = append(managed, name), fields{}
		}
		return managed, grains
	}
	most, mostGrains := names(maxResources)
	more, moreGrains := names(maxResources + 1)
	w := strict(Policy{})
	for what, c := range map[string]struct {
		fields  fields
		refused bool
	}{
		"many":            {fields{"resources": fields{"ssh": most}, "resource_grains": mostGrains}, false},
		"too many":        {fields{"resources": fields{"ssh": more}}, true},
		"many of two":     {fields{"resources": fields{"ssh": most, "x": list("y")}}, true},
		"too many grains": {fields{"resources": fields{}, "resource_grains": moreGrains}, true},
	} {
		v := w.Check(request(t, load(t, "web1", "_register_resources", c.fields)), nil)
		if v.Refused != c.refused || c.refused &&
			(v.Rule != Budget || v.Reason != "too_many_resources" || string(v.Reply) != string(replyMap)) {
			t.Errorf("%s: refused %t by %s: %s", what, v.Refused, v.Rule, v.Reason)
		}
	}
}

// What would shape the tag of a return is found by return_ids, too: a site that relaxed job_ids has not meant that.
func TestCheck_TagInJID(t *testing.T) {
	for _, mode := range []Mode{Log, Off} {
		w := New(Config{Modes: map[Rule]Mode{JobIDs: mode, ReturnJobs: Off}, Accepted: accepted})
		for _, jid := range []any{publishedJID + "/ret/db1", "1/new", "a/b", `a\b`, "..", "x\r", "x\n\n", list("1/ret/db1")} {
			v := w.Check(request(t, load(t, "web1", "_return", fields{"jid": jid, "return": true})), nil)
			if !v.Refused || v.Rule != ReturnIDs || v.Reply == nil {
				t.Errorf("%s: %q: %+v", mode, jid, v)
			}
		}
		for _, jid := range []any{publishedJID, publishedJID + "_4711", "req", "nocache", "", "7f1e-uuid", uint64(7), nil} {
			if v := w.Check(request(t, load(t, "web1", "_return", fields{"jid": jid, "return": true})), nil); v.Refused {
				t.Errorf("%s: %v: %+v", mode, jid, v)
			}
		}
	}
}

func TestOnDemandPillarIsCut(t *testing.T) {
	for _, p := range []Policy{{}, {OnDemand: []string{"libvirt"}}} {
		r := request(t, load(t, "web1", "_pillar",
			fields{"grains": fields{"id": "web1"}, "ext": fields{"git": "x", "libvirt": "_"}, "saltenv": "base"}))
		v := strict(p).Check(r, nil)
		if v.Refused || v.Plain == nil || v.Rule != PillarExt {
			t.Fatalf("%+v", v)
		}
		peek, err := saltwire.PeekLoad(v.Plain)
		if err != nil || peek.Raw.Ext != nil || peek.Cmd != "_pillar" || peek.Raw.SaltEnv == nil || peek.ID != "web1" {
			t.Errorf("%+v, %v", peek, err)
		}
	}
}

// clock is a time that moves when told to.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func TestBudget(t *testing.T) {
	c := &clock{time.Unix(1_700_000_000, 0)}
	w := New(Config{Rate: 10, Bytes: 1000, Accepted: accepted, Now: c.now})
	check := func(id string, size int) Verdict {
		r := request(t, load(t, id, "_file_envs", nil))
		r.Minion, r.Size = w.Minion(id, "key of "+id), size
		return w.Check(r, nil)
	}
	ask := func(id string, size int) bool { return check(id, size).Wait == 0 }
	for i := range 10 * budgetSeconds {
		if !ask("web1", 1) {
			t.Fatalf("request %d is refused", i)
		}
	}
	waits, longest := 0, time.Duration(0)
	for ; ; waits++ { // each a tenth of a second longer than the one before
		v := check("web1", 1)
		if v.Refused {
			break
		}
		if v.Wait <= longest || v.Wait > maxPace {
			t.Fatalf("request %d beyond the budget waits %s after one that waited %s", waits, v.Wait, longest)
		}
		longest = v.Wait
	}
	if want := int(maxPace.Seconds() * 10); waits != want {
		t.Errorf("%d requests wait, not %d", waits, want)
	}
	c.t = c.t.Add(maxPace) // their turn has come
	if !ask("db1", 1) {
		t.Error("another minion pays for it")
	}
	c.t = c.t.Add(time.Second)
	for i := range 10 {
		if !ask("web1", 1) {
			t.Errorf("request %d of the next second is refused", i)
		}
	}
	if ask("web1", 1) {
		t.Error("there is more than a second's worth in a second")
	}
	c.t = c.t.Add(time.Hour)
	if !ask("web1", 1<<30) {
		t.Error("a request larger than the budget never passes")
	}
	if ask("web1", 1) {
		t.Error("and costs nothing")
	}
	r := request(t, load(t, "web1", "_file_envs", nil))
	r.Minion, r.Size, r.Relayed = w.Minion("web1", "key of web1"), 1, true
	if w.Check(r, nil).Refused {
		t.Error("a relayed request pays twice")
	}
}

// A minion that asks little and has much answered waits with its next requests, and is not heard when there are too
// many; who asks one after the other is only slowed.
func TestAnswersHaveABudget(t *testing.T) {
	const perSecond = 1000
	c := &clock{time.Unix(1_700_000_000, 0)}
	w := New(Config{Answers: perSecond, Accepted: accepted, Now: c.now})
	ask := func(id string, answer int) Verdict {
		r := request(t, load(t, id, "_file_list", nil))
		r.Minion, r.Size = w.Minion(id, "key of "+id), 1
		v := w.Check(r, nil)
		if !v.Refused {
			w.Answered(r.Minion, answer)
		}
		return v
	}
	for i := range budgetSeconds {
		if v := ask("web1", perSecond); v.Refused || v.Wait != 0 {
			t.Fatalf("answer %d: %+v", i, v)
		}
	}
	for i := range 100 { // one after the other: each begins when the one before has been answered
		v := ask("web1", perSecond)
		if v.Refused || v.Wait > time.Second {
			t.Fatalf("answer %d beyond the budget: %+v", i, v)
		}
		c.t = c.t.Add(v.Wait)
	}
	refused := 0
	for range 10 { // all at once
		if v := ask("web1", perSecond); v.Refused {
			refused++
			if v.Rule != Budget || v.Reply != nil {
				t.Errorf("%+v", v)
			}
		}
	}
	if refused < 5 {
		t.Errorf("%d of ten at once are refused", refused)
	}
	if v := ask("db1", 1); v.Refused || v.Wait != 0 {
		t.Errorf("another minion pays for it: %+v", v)
	}
	c.t = c.t.Add(time.Hour)
	if v := ask("web1", 1<<40); v.Refused || v.Wait != 0 {
		t.Errorf("an hour later: %+v", v)
	}
	c.t = c.t.Add(budgetSeconds * time.Second)
	if v := ask("web1", 1); v.Refused || v.Wait != 0 {
		t.Errorf("one large answer is never forgiven: %+v", v)
	}
	w = New(Config{Answers: 1, Modes: map[Rule]Mode{Budget: Off}, Now: c.now})
	for range 3 {
		if v := ask("web1", 1<<30); v.Refused || v.Wait != 0 {
			t.Errorf("a rule that is off: %+v", v)
		}
	}
}

func TestDowngrade(t *testing.T) {
	w := New(Config{})
	m := w.Minion("web1", "key")
	if w.Downgraded("web1", "key", 2, nil) {
		t.Error("nothing is proven")
	}
	w.Proven(m, 2)
	if w.Downgraded("web1", "key", 2, nil) {
		t.Error("2 after 2")
	}
	w.Proven(m, 3)
	w.Proven(m, 2)
	if m.Proven() != 3 || !w.Downgraded("web1", "key", 2, nil) || !w.Downgraded("web1", "key", 0, nil) {
		t.Error("3 is forgotten")
	}
	if w.Downgraded("web1", "key", 3, nil) || w.Downgraded("web1", "another key", 2, nil) ||
		w.Downgraded("db1", "key", 2, nil) {
		t.Error("who is no minion that spoke 3 is refused")
	}
	if n := w.Found()[ProtocolDowngrade].Refused; n != 2 {
		t.Errorf("counted %d", n)
	}
	again := New(Config{})
	again.Remember(w.Proofs(), func(id string) (KeyHash, bool) { return HashKey("key"), id == "web1" })
	if !again.Downgraded("web1", "key", 2, nil) {
		t.Error("not remembered")
	}
	if !again.TakeChanged() || again.TakeChanged() {
		t.Error("changes are not told once")
	}
	again = New(Config{})
	again.Remember(w.Proofs(), func(string) (KeyHash, bool) { return HashKey("another"), true })
	if len(again.Proofs()) != 0 {
		t.Error("what a former key's owner spoke is remembered")
	}
	log := New(Config{Modes: map[Rule]Mode{ProtocolDowngrade: Log}})
	log.Proven(log.Minion("web1", "key"), 3)
	heard := false
	if log.Downgraded("web1", "key", 2, func(_ Rule, _ string, enforced bool) { heard = !enforced }) || !heard {
		t.Error("log does not log")
	}
}

// Where a minion was met is remembered over restarts, with its latest return.
func TestMet(t *testing.T) {
	c := &clock{time.Unix(1_700_000_000, 0)}
	w := New(Config{Now: c.now})
	m := w.Minion("web1", "key")
	w.Proven(m, 3)
	meet := func(cmd, jid, remote string, relayed bool) {
		c.t = c.t.Add(time.Second)
		w.Met(&Request{Minion: m, Peek: &saltwire.Peek{Cmd: cmd, JID: jid, Fun: "test.ping"},
			Remote: netip.MustParseAddrPort(remote), Relayed: relayed})
	}
	if w.TakeHeard() {
		t.Error("heard of nobody")
	}
	meet("_return", "20260102030405000001", "[::ffff:192.0.2.7]:4711", false)
	returned := c.t
	meet("_pillar", "", "192.0.2.7:4712", false)
	meet("_return", "20260102030405000002", "192.0.2.9:4713", true)
	if !w.TakeHeard() || w.TakeHeard() {
		t.Error("what was heard is not told once")
	}
	w.Met(&Request{Peek: &saltwire.Peek{}}) // of one that is not remembered
	var none *Wall
	none.Met(&Request{Minion: m})
	want := Proof{
		ID: "web1", Key: HashKey("key"), Version: 3, Met: returned.Add(time.Second).UTC(),
		From:     netip.MustParseAddr("192.0.2.7"),
		Returned: &Returned{JID: "20260102030405000001", Fun: "test.ping", At: returned.UTC()},
	}
	text, err := json.Marshal(w.Proofs())
	require.NoError(t, err)
	var proofs []Proof
	require.NoError(t, json.Unmarshal(text, &proofs))
	again := New(Config{Now: c.now})
	again.Recall(proofs, func(id string) (KeyHash, bool) { return HashKey("key"), id == "web1" })
	if got := again.Proofs(); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Errorf("recalled %+v, want %+v", got, want)
	}
	other := New(Config{Now: c.now})
	other.Remember(proofs, func(string) (KeyHash, bool) { return HashKey("key"), true })
	if got := other.Proofs(); len(got) != 1 || !got[0].Met.IsZero() {
		t.Errorf("another node takes it for its own: %+v", got)
	}
}

func TestMinionsAreBounded(t *testing.T) {
	w := New(Config{Minions: 10})
	for i := range 1000 {
		w.Proven(w.Minion(strings.Repeat("x", i%100), "key"), 3)
	}
	if n := len(w.Proofs()); n > 10 {
		t.Errorf("%d minions remembered", n)
	}
	a := w.Minion("a", "one")
	if w.Minion("a", "one") != a || w.Minion("a", "two") == a {
		t.Error("a minion is not its key")
	}
}

func TestCounts(t *testing.T) {
	reg := prometheus.NewRegistry()
	c := &clock{time.Unix(1_700_000_000, 0)}
	w := New(Config{Modes: map[Rule]Mode{JobIDs: Log}, Now: c.now, Registerer: reg})
	w.Check(request(t, load(t, "web1", "_minion_event", fields{"tag": "salt/key", "data": fields{}})), nil)
	w.Check(request(t, load(t, "db1", "pub_ret", fields{"jid": "../x"})), nil)
	w.Refused("bad_token", "db1")
	w.Refused("nothing that a rule is about", "db1")
	w.Count(AESCommands, strings.Repeat("x", 1000))
	found := w.Found()
	for rule, want := range map[Rule]Found{
		EventTags:   {Rule: EventTags, Refused: 1, Last: Last{c.t, "web1"}},
		JobIDs:      {Rule: JobIDs, Mode: Log, Logged: 1, Last: Last{c.t, "db1"}},
		Identity:    {Rule: Identity, Refused: 1, Last: Last{c.t, "db1"}},
		AESCommands: {Rule: AESCommands, Refused: 1, Last: Last{c.t, strings.Repeat("x", maxShownID)}},
		FileRecv:    {Rule: FileRecv},
	} {
		if found[rule] != want {
			t.Errorf("%s: %+v", rule, found[rule])
		}
	}
	if n := testutil.ToFloat64(w.counts.sums.WithLabelValues("event_tags", "refused")); n != 1 {
		t.Errorf("metric says %v", n)
	}
}

func TestRulesAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range Rules {
		if r.Name == "" || r.Doc == "" || seen[r.Name] {
			t.Errorf("rule %d: %+v", i, r)
		}
		seen[r.Name] = true
		for _, reason := range r.Reasons {
			if seen[reason] {
				t.Errorf("%s: reason %s twice", r.Name, reason)
			}
			seen[reason] = true
		}
		rule, err := ParseRule(r.Name)
		if (err == nil) == r.Fixed || err == nil && rule != Rule(i) {
			t.Errorf("%s: %v, %v", r.Name, rule, err)
		}
	}
	for _, name := range ModeNames {
		if m, err := ParseMode(name); err != nil || m.String() != name {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	if _, err := ParseMode("maybe"); err == nil {
		t.Error("maybe is a mode")
	}
	fixed := New(Config{Modes: map[Rule]Mode{IDSyntax: Off, Identity: Log}})
	if fixed.Mode(IDSyntax) != Enforce || fixed.Mode(Identity) != Enforce {
		t.Error("a fixed rule can be switched off")
	}
	var none *Wall
	if v := none.Check(&Request{}, nil); v.Refused || none.Minion("a", "b") != nil || !none.Enforces(ClearCommands, "") {
		t.Error("no wall is no wall")
	}
}

func TestChecksAllocateNothing(t *testing.T) {
	w := strict(Policy{Filters: true, FileRecv: true})
	m := w.Minion("web1", "key")
	for cmd, f := range map[string]fields{
		"_return":       {"jid": publishedJID, "return": true, "fun": "test.ping", "master_id": "m1"},
		"_minion_event": {"tag": "salt/job/" + publishedJID + "/prog/web1/0", "data": fields{}},
		"_serve_file":   {"path": "a/b/c", "saltenv": "base", "loc": 0},
		"_file_recv":    {"path": list("etc", "fstab"), "loc": 0, "data": "x"},
		"_pillar":       {"grains": fields{}, "saltenv": nil, "pillarenv": nil}, // else an id is made to look for
		"_file_envs":    {},
		"_file_find":    {"path": "a/b?saltenv=dev", "saltenv": "base"},
		"_file_list":    {"saltenv": "base", "fsbackend": list("roots")},
	} {
		r := request(t, load(t, "web1", cmd, f))
		r.Minion = m
		if n := testing.AllocsPerRun(100, func() {
			if v := w.Check(r, nil); v.Refused {
				t.Fatal(v)
			}
		}); n > 0 {
			t.Errorf("%s: %v allocations", cmd, n)
		}
	}
}

// What is remembered of each return costs no memory after the first one.
func TestMetAllocatesNothing(t *testing.T) {
	w := New(Config{})
	r := request(t, load(t, "web1", "_return",
		fields{"jid": "20260102030405000001", "fun": "state.apply", "return": true}))
	r.Minion = w.Minion("web1", "key")
	r.Remote = netip.MustParseAddrPort("192.0.2.7:4711")
	w.Met(r)
	if n := testing.AllocsPerRun(1000, func() { w.Met(r) }); n != 0 {
		t.Errorf("%v allocations for each return", n)
	}
}

func BenchmarkMet(b *testing.B) {
	w := New(Config{})
	r := request(b, load(b, "web1", "_return",
		fields{"jid": "20260102030405000001", "fun": "state.apply", "return": true}))
	r.Minion = w.Minion("web1", "key")
	b.ReportAllocs()
	for b.Loop() {
		w.Met(r)
	}
}

// A rule that was relaxed does not hide what another one refuses.
func TestRelaxedRulesHideNothing(t *testing.T) {
	stolen := event("salt/job/"+publishedJID+"/ret/db1",
		fields{"id": "db1", "return": true, "error": 1, "__peer_id": "m2"})
	for _, c := range []struct {
		name  string
		modes map[Rule]Mode
		want  Rule
	}{
		{"tags logged", map[Rule]Mode{EventTags: Log}, SyndicReturns},
		{"tags and whom off", map[Rule]Mode{EventTags: Off, SyndicReturns: Off}, ReturnIDs},
		{"whom logged, tags off", map[Rule]Mode{EventTags: Off, SyndicReturns: Log}, ReturnIDs},
	} {
		w := New(Config{Modes: c.modes, Policy: Policy{Filters: true}, Accepted: accepted, Job: jobs})
		for form, f := range map[string]fields{
			"list": {"events": list(stolen)},
			"single": {"tag": "salt/job/" + publishedJID + "/ret/db1", "data": fields{}, "error": 1,
				"__peer_id": "m2"},
			"put together of a list": {"pretag": "salt", "events": list(event(list("job", publishedJID, "ret", "db1")))},
			"before others, a list":  {"pretag": list("salt"), "events": list(event("job"))},
		} {
			v := w.Check(request(t, load(t, "web1", "_minion_event", f)), func(Rule, string, bool) {})
			if !v.Refused || v.Rule != c.want {
				t.Errorf("%s, %s: %+v, want %s", c.name, form, v, c.want)
			}
		}
	}
}

// Each rule is on the page about rules with its default, and the page about options names those which are not enforced.
func TestRules_Documented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/wall.md")
	require.NoError(t, err)
	options, err := os.ReadFile("../../docs/reference/configuration.md")
	require.NoError(t, err)
	for _, r := range Rules {
		mode := r.Default.String()
		if r.Fixed {
			mode = "fixed"
		}
		plain, explained := fmt.Sprintf("\n| `%s` | %s | ", r.Name, mode), fmt.Sprintf("\n| `%s` * | %s | ", r.Name, mode)
		if !bytes.Contains(page, []byte(plain)) && !bytes.Contains(page, []byte(explained)) {
			t.Errorf("docs/reference/wall.md has no row for %s with the default %s", r.Name, mode)
		}
		if r.Default != Enforce && !strings.Contains(strings.Join(strings.Fields(string(options)), " "), r.Name+", which is "+mode) {
			t.Errorf("%s is not enforced: the option cluster_wall has to say so (cmd/saltclusterd/config/wall.go)", r.Name)
		}
	}
}
