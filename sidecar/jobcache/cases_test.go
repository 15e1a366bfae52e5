package jobcache_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// highstate is a state run's return with failures, oddities included.
func highstate() dict {
	state := func(result any, n int) dict {
		return dict{"name", "x", "changes", dict{"new", "ü", "old", []byte{0xff}}, "result", result,
			"comment", strings.Repeat("c", 10*n), "__sls__", "top", "__run_num__", n, "duration", 1.5, "__id__", "x"}
	}
	return dict{
		"file_|-/etc/motd_|-/etc/motd_|-managed", state(true, 0),
		"pkg_|-nginx_|-nginx_|-installed", state(false, 1),
		"cmd_|-ürün_|-run_|-run", state(false, 20),
		"test_|-n_|-n_|-nop", state(nil, 3),
		"plain", state(false, 4),
	}
}

// cases are the loads that are compared with stock masters.
func cases(t *testing.T, keys *testKeys, major int) []stockCase {
	start := time.Date(2026, 11, 21, 4, 5, 6, 789012000, time.UTC).UnixMicro()
	var all []stockCase
	n := 0
	jid := func() string { n++; return fmt.Sprintf("20261121040506%06d", n) }
	add := func(name string, load dict) {
		all = append(all, stockCase{Name: name, Load: wire(t, load), Now: start + int64(len(all))*1000003})
	}
	python := func(name string, load dict) {
		add(name, load)
		all[len(all)-1].python = true
	}
	plainCases(add, jid)
	stateCases(add, python, jid)
	oddCases(add, python, jid)
	datetimeCases(add, jid)
	for i := range all {
		all[i].bad = strings.HasPrefix(all[i].Name, "no date")
	}
	reqCases(add, python, jid)
	syndicCases(add, python, jid)
	signedCases(t, keys, add, python, jid)
	eventCases(add, python, jid)
	add("resource", ret(jid(), "m1", "resource_id", "switch7"))
	several := add
	if major >= 3008 { // whose globs may be several
		several = python
	}
	several("own target, globs", ret(jid(), "m1", "tgt", "m1,m2"))
	return all
}

func plainCases(add func(string, dict), jid func() string) {
	add("ping", ret(jid(), "m1"))
	same := jid()
	add("first", ret(same, "m1", "return", "one", "tgt", "m[12]"))
	add("second of another minion", ret(same, "m2", "return", "two", "master_id", "node1"))
	add("duplicate", ret(same, "m1", "return", "one"))
	add("duplicate that differs", ret(same, "m1", "return", "three", "out", "highstate"))
	add("nested", ret(jid(), "m1", "return", dict{"a",
		list{1, -1, 1 << 40, -(1 << 40), uint64(1<<64 - 1), 1.25, nil, true},
		"b", dict{"c", dict{"d", list{list{list{}}}}}, 7, "number as key", -7, "another", nil, "none"}, "out", "nested"))
	add("binary", ret(jid(), "m1", "return", dict{"raw", []byte{0, 0xff, 0xfe}, []byte{0xff, 1}, "odd key"}))
	add("unicode", ret(jid(), "m1", "return", "Grüße, 世界 🙂 \x00 end", "fun", "cmd.run", "fun_args", list{"ü"}))
	add("text lengths", ret(jid(), "m1", "return",
		list{strings.Repeat("a", 31), strings.Repeat("a", 32), strings.Repeat("b", 255),
			strings.Repeat("c", 256), strings.Repeat("d", 70000)}))
	add("bytes lengths", ret(jid(), "m1", "return", list{[]byte("\xff" + strings.Repeat("a", 255)),
		[]byte("\xff" + strings.Repeat("a", 254)), []byte("\xff" + strings.Repeat("a", 70000))}))
	add("out and retcode", ret(jid(), "m1", "out", "highstate", "retcode", 2, "success", false))
	add("out is a map", ret(jid(), "m1", "out", dict{"a", 1}))
	add("two megabytes of text", ret(jid(), "m1", "return", strings.Repeat("x", 2<<20)))
	add("two megabytes in pieces", ret(jid(), "m1", "return", pieces(40, 50_000, "p")))
	add("much in umlauts", ret(jid(), "m1", "return", pieces(60, 700, "ü"), "fun", "cmd.run"))
	add("much in symbols", ret(jid(), "m1", "return", pieces(60, 400, "🙂")))
	add("many small pieces", ret(jid(), "m1", "return", pieces(500, 20, "p")))
	add("many numbers", ret(jid(), "m1", "return", dict{"n", manyNumbers(3000), "f", dict{"g", manyNumbers(500)}}))
	add("wide map", ret(jid(), "m1", "return", pieces(70_000, 1, "")))
	add("datetime", ret(jid(), "m1", "return", ext("\xc7\x18\x4e20261121T04:05:06.000001")))
	add("unique jid", ret(jid()+"_4711", "m1"))
	add("jid of no form", ret("nonsense", "m1"))
	add("jid nocache", ret("nocache", "m1", "return", "gone"))
	add("kept _stamp", ret(jid(), "m1", "_stamp", "mine"))
}

func pieces(n, size int, of string) dict {
	var d dict
	for i := range n {
		d = append(d, fmt.Sprintf("k%d", i), strings.Repeat(of, size))
	}
	return d
}

// deep is lists and maps inside each other.
func deep(n int) any {
	var v any = "core"
	for i := range n {
		if v = (list{v}); i%2 == 0 {
			v = dict{"d", v.(list)[0]}
		}
	}
	return v
}

func manyNumbers(n int) list {
	l := make(list, n)
	for i := range l {
		l[i] = i
	}
	return l
}

func stateCases(add, python func(string, dict), jid func() string) {
	for _, fun := range []string{"state.highstate", "state.sls", "state.apply"} {
		add(fun+" failed", ret(jid(), "m1", "fun", fun, "return", highstate(), "retcode", 2, "success", false, "out",
			"highstate"))
	}
	failed := func(r any) dict {
		return ret(jid(), "m1", "fun", "state.sls", "retcode", 2, "return", r).without("user")
	}
	add("highstate good", ret(jid(), "m1", "fun", "state.highstate", "return", highstate(), "retcode", 0))
	add("failed to render", failed(list{"No matching sls found for 'x'", "ü"}))
	add("failed with text", failed("broken"))
	add("state that is no map", failed(highstate().with("pkg_|-nginx_|-nginx_|-installed", "text")))
	add("number for a state", failed(dict{1, dict{"result", false}, "a_|-b_|-c_|-d", dict{"result", false}}))
	add("no states", failed(dict{}))
	python("list of other things", failed(list{1}))
	add("several functions", ret(jid(), "m1", "fun", list{"test.ping", "cmd.run"}, "retcode",
		dict{"test.ping", 0, "cmd.run", 1},
		"return", dict{"test.ping", true, "cmd.run", "x"}, "success", dict{"test.ping", true, "cmd.run", false}))
	add("several good functions", ret(jid(), "m1", "fun", list{"state.sls", "cmd.run"}, "retcode", 0, "return", dict{}))
	python("several functions, a state among them", ret(jid(), "m1", "fun", list{"state.sls", "cmd.run"},
		"retcode", dict{"state.sls", 2, "cmd.run", 1}, "return", dict{"state.sls", highstate(), "cmd.run", "x"}))
	python("several functions, one code", ret(jid(), "m1", "fun", list{"a", "b"}, "retcode", 1))
}

func oddCases(add, python func(string, dict), jid func() string) {
	for _, key := range []string{"return", "jid", "success", "retcode", "fun_args", "user"} {
		add("without "+key, ret(jid(), "m1").without(key))
	}
	add("without fun, no return", ret(jid(), "m1", "return", nil).without("fun"))
	add("without fun, return has it", ret(jid(), "m1", "return",
		dict{"fun", "a.b", "user", "eve"}).without("fun").without("user"))
	python("without fun, true", ret(jid(), "m1").without("fun"))
	add("own target", ret(jid(), "m1", "tgt", "m1"))
	add("own target, wild", ret(jid(), "m1", "tgt", "w*"))
	add("own target, list", ret(jid(), "m1", "tgt", "m2,nobody,m1,,m2", "tgt_type", "list"))
	add("own target, list of names", ret(jid(), "m1", "tgt", list{"m2", "m1"}, "tgt_type", "list"))
	add("empty target", ret(jid(), "m1", "tgt", ""))
	python("own target, grain", ret(jid(), "m1", "tgt", "os:x", "tgt_type", "grain"))
	python("number as jid", ret("x", "m1", "jid", 20261121040506123456%100000))
	add("250 deep", ret(jid(), "m1", "return", deep(250)))
	python("300 deep", ret(jid(), "m1", "return", deep(300)))
	python("600 deep", ret(jid(), "m1", "return", deep(600)))
	python("same key twice", append(ret(jid(), "m1"), "user", "again"))
	python("truth as key", ret(jid(), "m1", "return", dict{true, 1, 1, 2}))
	python("other extension", ret(jid(), "m1", "return", ext("\xd4\x05\x00")))
	python("jid with underscores", ret("2026_121040506123456", "m1"))
	python("minion called jid", ret(jid(), "jid"))
}

// datetimeCases are of Salt's own extension for dates. What is none would be in the job cache for good, where Salt's
// own code reads it again and again (salt/returners/local_cache.py:get_jid), and on the bus, where its readers stumble.
func datetimeCases(add func(string, dict), jid func() string) {
	for _, good := range []string{"20240229T23:59:59.999999", "99991231T00:00:00.000000", "10000101T00:00:00.000000"} {
		add("date "+good, ret(jid(), "m1", "return", list{ext("\xc7\x18\x4e" + good)}))
	}
	for _, none := range []string{
		"20261321T04:05:06.000001", "20260229T00:00:00.000000", "20260100T00:00:00.000000", "20260101T24:00:00.000000",
		"20260101T00:60:00.000000", "20260101T00:00:60.000000", "00000101T00:00:00.000000",
	} {
		add("no date "+none, ret(jid(), "m1", "return", dict{"a", ext("\xc7\x18\x4e" + none)}))
		add("no date, elsewhere "+none, ret(jid(), "m1", "out", list{1, ext("\xc7\x18\x4e" + none)}))
	}
}

func reqCases(add, python func(string, dict), _ func() string) {
	add("scheduled", ret("req", "m1", "fun_args", list{"a", dict{"b", 1}}, "schedule", "job1", "pid", 4711))
	add("scheduled with arg", ret("req", "m1", "arg", list{"own"}))
	add("scheduled without arguments", ret("req", "m2").without("fun_args"))
	add("scheduled, not kept", ret("req", "m1", "nocache", true))
	add("scheduled state", ret("req", "m1", "fun", "state.highstate", "return", highstate(), "retcode", 2))
	add("scheduled, minion like a glob", ret("req", "w[1]"))
	python("scheduled twice over", append(ret("req", "m1"), "jid", "req"))
}

// eventCases are what minions fire.
func eventCases(add, python func(string, dict), jid func() string) {
	event := func(more ...any) dict {
		d := dict{"id", "m1", "cmd", "_minion_event", "pretag", nil, "nonce", "n", "ts", 1790000000, "tok", "t"}
		for i := 0; i < len(more); i += 2 {
			d = d.with(more[i], more[i+1])
		}
		return d
	}
	one := func(tag any, data any) dict { return event("tag", tag, "data", data) }
	many := func(events ...any) dict { return event("tag", nil, "data", nil, "events", list(events)) }
	add("event", one("my/tag", dict{"a", 1, "b", list{true, nil}, "raw", []byte{0xff}}))
	add("event, data is text", one("my/tag", "ü"))
	add("event, no data", event("tag", "my/tag", "data", nil))
	add("event with neither", event())
	add("event with a stamp", one("my/tag", dict{}).with("_stamp", "mine"))
	add("event that started a minion", one("salt/minion/m1/start", "Minion m1 started").with("pretag", ""))
	add("event of a master's tag, alone", one("salt/key", dict{"id", "x"}))
	add("event, large", one("my/large", dict{"text", strings.Repeat("x", 5000), "in",
		dict{"more", strings.Repeat("ü", 3000)}}))
	add("event, larger than any", one("my/large", strings.Repeat("x", 2<<20)))
	add("events", many(dict{"tag", "a", "data", dict{"n", 1}}, dict{"data", dict{"n", 2, "_stamp", "x"}, "tag", "b/c"}))
	add("events, none", many())
	add("event of a list without data", many(dict{"tag", "a", "other", "ü"}))
	add("events, progress of a job", many(dict{"data", dict{"ret", dict{"result", true}, "len", 3}, "tag",
		"salt/job/" + jid() + "/prog/m1/0"}))
	add("events with a pretag", many(dict{"tag", "a", "data", dict{"n", 1}},
		dict{"tag", "b", "data", dict{}}).with("pretag", "syndic/m1"))
	add("events with an empty pretag", many(dict{"tag", "a", "data", dict{}}).with("pretag", ""))
	add("events and a tag", event("tag", "ignored", "data", dict{}, "events", list{dict{"tag", "a", "data", dict{}}}))
	python("event, error of a minion", one("_salt_error", dict{"message", "broken"}))
	python("events of a master's tag", many(dict{"tag", "salt/job/1/new", "data", dict{}}))
	python("events, minions of a syndic's job",
		many(dict{"tag", "x", "data", dict{"minions", list{"low1"}, "jid", jid()}}))
	python("event without tag", one("", dict{}))
	python("event whose tag is a number", one(7, dict{}))
	python("events, no list", event("events", dict{"tag", "a"}))
	python("events, text in the list", many("a"))
	python("events, data is text", many(dict{"tag", "a", "data", "text"}))
	python("events, no tag", many(dict{"data", dict{}}))
	python("event without an id", one("x", dict{}).without("id"))
}

func syndicCases(add, python func(string, dict), jid func() string) {
	item := func(v any) dict { return dict{"return", v, "retcode", 0, "success", true} }
	job := func(jid, tgt, kind string) dict {
		return dict{"fun", "test.ping", "jid", jid, "tgt", tgt, "tgt_type", kind, "user", "root", "arg", list{}}
	}
	load := func(jid string, returns dict, more ...any) dict {
		d := dict{"id", "syndic1", "jid", jid, "fun", "test.ping", "arg", nil, "tgt", nil, "tgt_type", nil, "load", nil,
			"return", returns}
		for i := 0; i < len(more); i += 2 {
			d = d.with(more[i], more[i+1])
		}
		return d
	}
	whole := func(loads ...any) dict {
		return dict{"cmd", "_syndic_return", "load", list(loads), "id", "syndic1", "nonce", "n", "ts", 1790000000, "tok", "t"}
	}
	one := jid()
	add("syndic", whole(load(one, dict{"low1", item(true), "low2", item("ü")}, "load", job(one, "*", "glob"), "master_id",
		"node1")))
	add("syndic again", whole(load(one, dict{"low1", item(true), "low3", item(3)}, "load", job(one, "w*", "glob"))))
	two := jid()
	add("syndic, two jobs", whole(load(two, dict{"low1", item(1)}, "load", job(two, "m1,m9", "list"), "out", "txt"),
		load(jid(), dict{"low2", item(2)}), dict{"id", "syndic1"}))
	add("syndic, none", whole())
	add("syndic, odd ids", whole(load(jid(), dict{"a/b", item(1), "..", item(2), "", item(3), "fine", item(4), 5,
		item(5)})))
	add("syndic, bad own id", whole(load(jid(), dict{"low1", item(1)}, "id", "../x")))
	add("old syndic", load(jid(), dict{"low1", item(true)}).with("cmd", "_syndic_return").without("load"))
	state := item(highstate()).with("retcode", 2).with("fun", "state.sls")
	add("syndic, state", whole(load(jid(), dict{"low1", state}, "fun", "state.sls")))
	grain := jid()
	python("syndic, target by grain", whole(load(grain, dict{"low1", item(true)}, "load", job(grain, "os:x", "grain"))))
	python("syndic, req", whole(load("req", dict{"low1", item(true)})))
	python("syndic, signed", whole(load(jid(), dict{"low1", item(true)}, "sig", "s")))
	python("syndic, list for a return", whole(load(jid(), dict{"low1", list{}})))
	python("syndic, hidden", whole(load(jid(), dict{".load.p", item(true)})))
}

// signedCases are signed as a minion does: over the load without nonce, tok and sig, text and bytes apart.
func signedCases(t *testing.T, keys *testKeys, add, python func(string, dict), jid func() string) {
	for _, algo := range []string{"PKCS1v15-SHA1", "PKCS1v15-SHA224"} {
		for _, good := range []bool{true, false} {
			d := ret(jid(), "m1", "return", dict{"a", "text", "n", 1})
			text := disk(t, d.without("nonce").without("tok"))
			sig, err := keys.sign.Sign(algo, text)
			require.NoError(t, err)
			if !good {
				sig[5] ^= 1
			}
			add(fmt.Sprintf("signed %s %v", algo, good), append(d, "sig", sig))
		}
	}
	for _, odd := range []any{nil, 1, true, list{}, dict{"a", 1}} {
		python(fmt.Sprintf("signature that is %v", odd), ret(jid(), "m1", "sig", odd))
	}
	date := ret(jid(), "m1", "return", ext("\xc7\x18\x4e20261121T04:05:06.000001"))
	python("signed date", append(date, "sig", []byte{0xff}))
}

// disk encodes with use_bin_type=True what wire encodes without.
func disk(t *testing.T, v any) []byte {
	var dst []byte
	switch v := v.(type) {
	case dict:
		dst = saltwire.AppendMapHeader(dst, len(v)/2)
		for _, e := range v {
			dst = append(dst, disk(t, e)...)
		}
	case list:
		dst = saltwire.AppendArrayHeader(dst, len(v))
		for _, e := range v {
			dst = append(dst, disk(t, e)...)
		}
	default:
		var err error
		if dst, err = saltwire.AppendAny(dst, v, saltwire.Disk); err != nil {
			t.Fatal(err)
		}
	}
	return dst
}
