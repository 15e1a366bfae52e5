package jobcache_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"saltclusterd/sidecar/saltwire"
)

// dice make loads that no stock minion sends: values of any type anywhere, encoded in any way. Most go through a master
// all the same.
type dice struct{ *rand.Rand }

// one of them.
func (d dice) one(of ...any) any { return of[d.IntN(len(of))] }

// odds says yes once in n times.
func (d dice) odds(n int) bool { return d.IntN(n) == 0 }

func (d dice) text() any {
	return d.one("", "a", "fun", "state.sls", "state.highstate", "test.ping", "req", "nocache", "ü", "世界🙂", "a\x00b",
		"x\n\nz", "\u0085\u00ff",
		strings.Repeat("x", d.IntN(40)), strings.Repeat("é", d.IntN(300)), strings.Repeat("🙂", d.IntN(90)),
		strings.Repeat("y", 3000),
		"\xed\xa0\x80", []byte{0xff, 0}, "file_|-a_|-b_|-c")
}

// oddly are the same things as others encode them, and dates.
var oddly = []any{
	"\xca\x3f\x80\x00\x00", "\xcc\x05", "\xcd\x00\x05", "\xce\x00\x00\x00\x05", "\xcf\x00\x00\x00\x00\x00\x00\x00\x05",
	"\xd0\x05",
	"\xd1\x00\x05", "\xd2\xff\xff\xff\xff", "\xd3\xff\xff\xff\xff\xff\xff\xff\xff", "\xd9\x03abc", "\xc4\x02\xff\x00",
	"\xc4\x02ab",
	"\xda\x00\x01a", "\xdb\x00\x00\x00\x01b", "\xdc\x00\x01\x01", "\xde\x00\x01\xa1a\x01", "\xdd\x00\x00\x00\x00",
	"\xdf\x00\x00\x00\x00",
	"\xc7\x18\x4e20261121T04:05:06.000001", "\xc7\x18\x4e20261321T04:05:06.000001",
}

func (d dice) value(depth int) any {
	n := d.IntN(16)
	switch {
	case n < 2:
		return d.one(0, 1, -1, 127, 128, 255, 256, -32, -33, -128, -129, 65535, 65536, 1<<31, 1<<32, int64(math.MinInt32)-1,
			int64(math.MaxInt64), uint64(math.MaxUint64), int64(math.MinInt64))
	case n == 2:
		return d.one(true, false, nil)
	case n == 3:
		return d.one(0.0, 1.5, math.Inf(1), math.NaN(), 1e300)
	case n == 4:
		return ext(d.one(oddly...).(string))
	case n < 8 && depth < 4:
		l := list{}
		for range d.IntN(4) {
			l = append(l, d.value(depth+1))
		}
		return l
	case n < 12 && depth < 4:
		m := dict{}
		for i := range d.IntN(5) {
			m = append(m, d.one(d.key(), fmt.Sprint("k", i), i+10), d.value(depth+1))
		}
		return m
	}
	return d.text()
}

func (d dice) key() any {
	return d.one("fun", "user", "return", "retcode", "result", "jid", "id", "ü", "pkg_|-n_|-n_|-installed", "", -5, nil,
		[]byte{0xff},
		"_stamp", "comment", "success", true, 1.5)
}

func (d dice) states() dict {
	all := dict{}
	for i := range d.IntN(5) {
		var one any = dict{"name", d.value(3), "changes", d.value(2), "result", d.one(true, false, false, nil, 0), "comment",
			d.text()}
		if d.odds(12) {
			one = d.value(2)
		}
		all = append(all, d.one(fmt.Sprint("file_|-a_|-ü_|-", i), fmt.Sprint("plain", i), i+100), one)
	}
	return all
}

// ret is a return with some fields of its own.
func (d dice) ret(jid string) dict {
	r := ret(jid, d.one("m1", "m2", "web2", "w[1]", "Web1").(string))
	for range d.IntN(5) {
		switch d.IntN(12) {
		case 0, 1:
			r = r.with("return", d.value(0))
		case 2, 3:
			r = r.with("fun", d.one("state.sls", "state.highstate")).with("return", d.states()).with("retcode",
				d.one(2, true, "x", 0, 1.5))
		case 4:
			r = r.with("fun", d.value(2))
		case 5:
			r = r.with(d.one("retcode", "out", "success"), d.value(2))
		case 6:
			r = r.with("tgt", d.one("*", "m*", "m1", "", "w?b2", "[", "[!m]*", "m1,m2", list{"m2", "m1"}, "[]a]", "w[[]1]", "M1",
				".*", "[^m]*",
				"[a-]*", "w\\*")).with("tgt_type", d.one("glob", "glob", "list", "list", "grain", 5))
		case 7:
			r = r.with(d.one("arg", "fun_args", "user", "metadata", "master_id", "schedule", "load", "_stamp", "minions"),
				d.value(1))
		case 8:
			r = r.without(d.one("return", "success", "retcode", "fun_args", "user", "fun"))
		case 9:
			r = r.with("jid", d.one("req", "req", "nocache", jid+"_12", jid+"x", " "+jid[1:])).with("nocache", d.value(2))
		case 10:
			r = r.with("sig", d.value(2))
		default:
			r = r.with("resource_id", d.one("switch7", "a b", "ü", "..", "", "jid", 5, nil))
		}
	}
	return r
}

// syndic is a syndic's load for one job.
func (d dice) syndic(jid string) dict {
	one := dict{"id", "syndic1", "jid", jid, "fun", d.one("test.ping", "state.sls"), "return", dict{
		d.one("low1", 7, "a/b"), dict{"return", d.one(d.value(1), d.states()), "retcode", d.one(0, 2, d.value(2)), "success",
			true},
	}}
	if d.odds(2) {
		one = one.with("load", dict{"fun", "test.ping", "jid", jid, "tgt", d.one("*", "m*", "m1,m2", list{"m1"}),
			"tgt_type", d.one("glob", "list"), "user", "root", "arg", d.value(2)})
	}
	if d.odds(3) {
		one = one.with(d.one("out", "fun_args", "master_id", "tgt"), d.value(1))
	}
	return dict{"cmd", "_syndic_return", "load", list{one}, "id", "syndic1", "nonce", "n", "ts", 1790000000, "tok", "t"}
}

func (d dice) tag() any {
	return d.one("a", "a/b", "my/tag", "salt/minion/m1/start", "salt/beacon/m1/x/", "salt/job/20261122/prog/m1/1",
		"salt/job/1/ret/m1", "salt/key", "ü", "a b",
		"a\n", "a\n\nb", "/", "a//b", "salt/", "", "_salt_error", 7, nil, true, []byte{0xff}, list{"a"}, dict{}, 1.5,
		strings.Repeat("t", 400), "a\x00b", "salt/run/1/new",
		"salt/wheel/1/new/x", "salt/cloudy", "SALT/KEY", "salt/job/x/y/publish")
}

// event is what a minion fires.
func (d dice) event() dict {
	e := dict{"id", d.one("m1", "m1", "m1", "m2", "w[1]"), "cmd", "_minion_event", "pretag", nil, "nonce", "n", "ts",
		1790000000, "tok", "t"}
	if d.odds(3) {
		e = e.with("pretag", d.one("", "x", "x/", "/x", "syndic/m1", "ü", 5, []byte("ab"), list{"a"}, dict{}, false, "a\n"))
	}
	if d.odds(6) {
		e = e.without("pretag")
	}
	if d.odds(2) {
		if e = e.with("tag", d.tag()).with("data", d.value(0)); d.odds(4) {
			e = e.without(d.one("data", "tag"))
		}
	}
	if d.odds(2) {
		l := list{}
		for range d.IntN(4) {
			one := dict{"tag", d.one("a", "b/c", d.tag())}
			switch d.IntN(6) {
			case 0:
			case 1:
				one = one.with("data", d.value(0))
			case 2:
				one = append(dict{"data", dict{"_stamp", "x", "n", d.value(1), d.key(), d.value(2)}}, one...)
			default:
				one = one.with("data", dict{"x", d.value(1), "k", d.value(0)})
			}
			if d.odds(6) {
				one = one.with(d.one("_stamp", "minions", "jid", "pretag", "other", 5, nil), d.value(1))
			}
			if d.odds(30) {
				l = append(l, d.value(2))
			}
			l = append(l, one)
		}
		e = e.with("events", l)
	}
	for d.odds(3) {
		e = e.with(d.one("_stamp", "minions", "jid", "env", "x", 7, "cluster"), d.value(1))
	}
	return e
}

// randomCases are n loads with a job each. Which of them only Python can take is not for the test to say, but the other
// ones must be taken in the same way.
func randomCases(t *testing.T, n int, seed, start int64) []stockCase {
	t.Helper()
	d := dice{rand.New(rand.NewPCG(uint64(seed), 0))}
	var all []stockCase
	for i := range n {
		jid := fmt.Sprintf("20261122040506%06d", i)
		load := d.ret(jid)
		switch d.IntN(5) {
		case 0:
			load = d.syndic(jid)
		case 1, 2:
			load = d.event()
		}
		one := stockCase{Name: fmt.Sprintf("random %d of seed %d", i, seed), Load: wire(t, load),
			Now: start + int64(i)*1_000_003, any: true}
		if _, err := saltwire.PeekLoad(one.Load); err == nil { // others do not come this far
			all = append(all, one)
		}
	}
	return all
}
