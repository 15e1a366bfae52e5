package mines_test

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

// settings are masters' configurations under which the same loads are tried.
var settings = []struct{ name, config string }{
	{"default", ""},
	{"guarded", "mine_get:\n  'm.*':\n    - test.*\n    - network\\.ip\n  Web1$:\n    - .*\n  web2: nothing\n"},
	{"guarded2", "mine_get:\n  'm[12]|web': ['test\\.(?:ping|echo)$', '']\n  'W.b1': ['a:b', 'network']\n  'w.*': 5\n"},
	{"closed", "mine_get: [a, b]\n"},
	{"enforced", "minion_data_cache: False\nenforce_mine_cache: True\n"},
}

// TestSameAsStock gives the same loads to the code of real masters and to ours, one after the other, and compares every
// answer, every file after every load, and modes.
func TestSameAsStock(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		for _, s := range settings {
			t.Run(v+"/"+s.name, func(t *testing.T) {
				t.Parallel() // they wait for disks and interpreters more than they compute
				compare(t, v, s.config)
			})
		}
	}
}

// stockCase is a load for both, and where the mine is that it may change.
type stockCase struct {
	Load []byte `json:"load"`
	File string `json:"file"`

	what  dict
	reply []byte // ours
	file  []byte // ours, after it
}

type stockResult struct {
	Ret  []byte `json:"ret"`
	File []byte `json:"file"`
}

func compare(t *testing.T, version, config string) {
	m := mastertest.New(t, mastertest.Options{Version: version, Config: config})
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	theirs, err := localmaster.LoadConfig(m.ConfigPath, ver)
	require.NoError(t, err)
	w := newWorld(t, options(t, config, theirs.Version.Major))
	major := ver.Major
	python, left := map[string]bool{}, 0
	var native []stockCase
	for _, one := range append(fixed(), random(mastertest.Randoms(t, 400), mastertest.RandomSeed(t))...) {
		id := one.load[3].(string)
		c := stockCase{Load: wire(t, one.load), File: mineFile(major, id), what: one.load}
		c.reply, err = w.ask(one.load)
		if why := one.python || one.since > 0 && major >= one.since; !one.anybody(config) && why != (err != nil) {
			t.Errorf("%v: only Python can take it: %v; answered %x, %v", one.load, why, c.reply, err)
		}
		if err != nil {
			python[err.Error()] = true
			left++
			continue
		}
		c.file = w.mine(major, id)
		native = append(native, c)
	}
	t.Logf("%d loads are answered, to Python go %d for %d reasons", len(native), left, len(python))
	results, bad := runStock(t, m, native), 0
	for i, c := range native {
		same := bytes.Equal(c.reply, results[i].Ret)
		if c.what[1] == "_mine_get" {
			same = sorted(t, c.reply, 2) == sorted(t, results[i].Ret, 2)
		}
		if !same {
			bad++
			t.Errorf("%d, %v:\nanswered %x\n   stock %x", i, c.what, c.reply, results[i].Ret)
		}
		if !bytes.Equal(c.file, results[i].File) {
			bad++
			t.Errorf("%d, %v:\nwritten %q\n  stock %q", i, c.what, c.file, results[i].File)
		}
		if bad > 5 { // one thing that is wrong makes many others wrong
			return
		}
	}
	for _, bank := range []string{"minions", "mine"} {
		if a, b := modes(t, filepath.Join(m.CacheDir, bank)), modes(t, filepath.Join(w.dir, bank)); !slices.Equal(a, b) {
			t.Errorf("%s: %q, stock %q", bank, b, a)
		}
	}
}

// modes lists what is below a directory, with modes.
func modes(t *testing.T, root string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out = append(out, strings.TrimPrefix(path, root)+" "+info.Mode().String())
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

// sorted is a value with the entries of its outer maps in order: those of a Python dict made from a set have none.
func sorted(t *testing.T, raw []byte, depth int) string {
	t.Helper()
	if depth == 0 || msgp.NextType(raw) != msgp.MapType {
		return string(raw)
	}
	n, rest, err := msgp.ReadMapHeaderBytes(raw)
	var all []string
	for ; n > 0 && err == nil; n-- {
		var val, after []byte
		if val, err = msgp.Skip(rest); err != nil {
			break
		}
		if after, err = msgp.Skip(val); err == nil {
			all = append(all, string(rest[:len(rest)-len(val)])+" "+sorted(t, val[:len(val)-len(after)], depth-1))
			rest = after
		}
	}
	require.NoError(t, err, raw)
	slices.Sort(all)
	return strconv.Itoa(len(all)) + strings.Join(all, "\n")
}

func runStock(t *testing.T, m *mastertest.Master, todo []stockCase) (results []stockResult) {
	t.Helper()
	accepted := filepath.Join(m.PkiDir, "minions")
	err := os.MkdirAll(accepted, 0o755)
	for _, id := range everybody {
		err = errors.Join(err, os.WriteFile(filepath.Join(accepted, id),
			[]byte("-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----"), 0o644))
	}
	require.NoError(t, err)
	m.Code("testdata/stock.py", mastertest.Umask, todo, &results)
	if len(results) != len(todo) {
		t.Fatalf("%d results", len(results))
	}
	return results
}

// trial is a load, and who can take it.
type trial struct {
	load   dict
	python bool // only Python
	since  int  // only Python from that version on
	any    bool // whoever
}

// anybody says whether it does not matter who takes a load: whoever may not ask hears that first.
func (c trial) anybody(config string) bool {
	return c.any || c.load[1] == "_mine_get" && strings.Contains(config, "mine_get")
}

// entry is what a minion sends that says who may read a value.
func entry(value any, more ...any) dict {
	return append(dict{"__data__", value, "__saltmine_acl__", 1}, more...)
}

// fixed are loads one after the other, with what they are about.
func fixed() (all []trial) {
	add := func(d dict) { all = append(all, trial{load: d, any: d[1] == "_mine_get"}) }
	must := func(d dict) { all = append(all, trial{load: d}) }
	python := func(d dict) { all = append(all, trial{load: d, python: true}) }
	since3008 := func(d dict) { all = append(all, trial{load: d, since: 3008}) }
	get := func(id string, more ...any) dict { return load("_mine_get", id, more...) }

	must(load("_mine_flush", "m1"))
	must(load("_mine_delete", "m1", "fun", "test.ping"))
	must(load("_mine", "m1", "data", dict{}))
	must(load("_mine_flush", "m1"))
	must(load("_mine", "m1", "data", dict{"test.ping", true, "network.ip_addrs", list{"10.0.0.1", "fe80::1"}}))
	must(load("_mine", "m1", "data", dict{"test.echo", "ü", "test.ping", nil, 5, "five", nil, "none", []byte{0xff},
		[]byte{0xfe, 0}}, "clear", false))
	must(load("_mine", "m1", "data", dict{"odd",
		list{ext("\xca\x3f\x80\x00\x00"), ext("\xd9\x03abc"), ext("\xdb\x00\x00\x00\x01b"),
			ext("\xd3\xff\xff\xff\xff\xff\xff\xff\xff"),
			ext("\xc7\x18\x4e20261121T04:05:06.000001"), math.Inf(1), uint64(math.MaxUint64)}}, "clear", 0))
	must(load("_mine", "m1", "data", dict{"long", strings.Repeat("y", 70000), "mid", strings.Repeat("é", 200), "in",
		dict{"a", dict{"b", list{dict{}}}}}))
	must(load("_mine_delete", "m1", "fun", "test.echo"))
	must(load("_mine_delete", "m1", "fun", "test.echo"))
	must(load("_mine_delete", "m1", "fun", ""))
	many := dict{}
	for i := range 40 {
		many = append(many, "fun."+strconv.Itoa(i), i)
	}
	must(load("_mine", "m2", "data", many))
	must(load("_mine", "m2", "data", append(dict{"new", 1, "fun.7", "seven"}, many[20:40]...)))
	must(load("_mine", "web2", "data", dict{"test.ping", entry(true, "allow_tgt", "m*"), "test.echo",
		entry("x", "allow_tgt", "m1,Web1", "allow_tgt_type", "list"),
		"test.arg", entry(nil, "allow_tgt", list{"web2", "m2"}, "allow_tgt_type", "list"), "test.none",
		entry(1, "allow_tgt", "nobody*"),
		"test.all", entry(dict{"x", 1}), "network.ip", entry(1, "allow_tgt", nil), "test.empty", entry(1, "allow_tgt", "")}))
	must(load("_mine", "Web1", "data", dict{"test.ping", true, "a:b", 1, "", "empty"}))
	must(load("_mine", "ü", "data", dict{"test.ping", "ü"}))
	must(load("_mine", "db:1", "data", dict{"test.ping", 5}))
	must(load("_mine", "w[1]", "data", dict{"test.ping", dict{"__data__", 1}}))
	for _, id := range []string{"m1", "Web1", "web2", "ü"} {
		for _, fun := range []any{"test.ping", "test.ping,test.echo", "test.ping,test.ping", list{"test.ping"},
			list{"test.arg", "test.none", "nothing"}, "", list{}, "a:b", "test.all",
			"test.none,network.ip,test.empty", "odd", "in,long"} {
			must(get(id, "fun", fun, "tgt", "*"))
			add(get(id, "fun", fun, "tgt", "m1"))
			add(get(id, "fun", fun, "tgt", "w*2", "tgt_type", "glob"))
			add(get(id, "fun", fun, "tgt", "web2,m1", "tgt_type", "list"))
			add(get(id, "fun", fun, "tgt", list{"Web1", "web2", "web2"}, "expr_form", "list"))
			add(get(id, "fun", fun, "tgt", "[!m]*", "tgt_type", "glob", "expr_form", "list"))
		}
	}
	must(get("m1", "fun", "test.ping", "tgt", "w[[]1]"))
	must(get("m1", "fun", "test.ping", "tgt", "M?"))
	must(get("m1", "fun", "test.ping", "tgt", "*", "expr_form", nil))
	must(get("m1", "fun", "test.ping", "tgt", "", "tgt_type", "list"))
	must(get("m1", "fun", "test.ping", "tgt", list{}, "tgt_type", "list"))
	since3008(get("m1", "fun", "test.ping", "tgt", "nobody"))
	since3008(get("m1", "fun", "test.ping", "tgt", "m1,nobody", "tgt_type", "list"))
	since3008(get("m1", "fun", "test.ping", "tgt", "m1,m2"))
	must(get("m1", "fun", "test.ping", "tgt", nil))
	must(load("_mine", "m2", "data", dict{"one.known", entry(1, "allow_tgt", "m1,nobody", "allow_tgt_type", "list")}))
	since3008(get("m1", "fun", "one.known", "tgt", "m2"))

	python(load("_mine", "m1", "data", dict{"a", 1}, "clear", true))
	python(load("_mine", "m1", "data", list{list{"a", 1}}))
	python(load("_mine", "m1", "data", nil))
	python(load("_mine", "m1"))
	python(load("_mine", "m1", "data", dict{true, 1}))
	python(load("_mine", "m1", "data", dict{"a", 1, "a", 2}))
	python(load("_mine", "m1", "data", dict{"a", ext("\xd4\x05x")}))
	python(load("_mine_delete", "m1"))
	python(load("_mine_delete", "m1", "fun", list{"test.ping"}))
	python(load("_mine_delete", "m1", "fun", 5))
	for _, kind := range []any{"grain", "pillar", "compound", "nodegroup", "pcre", "GLOB", nil, 5, "", "range", "ipcidr",
		"data", "grain_pcre"} {
		python(get("m1", "fun", "test.ping", "tgt", "*", "tgt_type", kind))
	}
	python(get("m1", "fun", "test.ping", "tgt", list{"m1"}))
	python(get("m1", "fun", "test.ping", "tgt", list{"m1", 5}, "tgt_type", "list"))
	python(get("m1", "fun", "test.ping", "tgt", dict{}, "tgt_type", "list"))
	python(get("m1", "fun", "test.ping", "tgt", "[z-a]"))
	python(get("m1", "fun", "test.ping"))
	all = append(all, trial{load: get("m1", "tgt", "*"), python: true, any: true})

	// Entries that make a master stumble, or take a name apart.
	must(load("_mine", "m2", "data", dict{"no.data", dict{"__saltmine_acl__", 1}, "by.grain",
		entry(1, "allow_tgt", "os:x", "allow_tgt_type", "grain"),
		"a:b", entry(1, "allow_tgt", "web2"), "odd.type", entry(1, "allow_tgt", "*", "allow_tgt_type",
			nil), "odd.list", entry(1, "allow_tgt", list{"m1"})}))
	for _, fun := range []string{"no.data", "by.grain", "a:b", "odd.type", "odd.list"} {
		python(get("m1", "fun", fun, "tgt", "m2"))
		must(get("m1", "fun", fun, "tgt", "Web1"))
	}
	must(load("_mine", "m2", "data", dict{"data", 1}))
	must(load("_mine_flush", "m2"))
	must(load("_mine", "m2", "data", dict{"data", 1, "_expires", 2}))
	python(load("_mine", "m2", "data", dict{"more", 1}))
	python(load("_mine_delete", "m2", "fun", "data"))
	add(get("m1", "fun", "data", "tgt", "m2"))
	must(load("_mine_flush", "m2"))
	return all
}

// dice make loads that no stock minion sends.
type dice struct{ *rand.Rand }

func (d dice) one(of ...any) any { return of[d.IntN(len(of))] }

func (d dice) odds(n int) bool { return d.IntN(n) == 0 }

func (d dice) id() string { return everybody[d.IntN(len(everybody))] }

func (d dice) fun() any {
	return d.one("test.ping", "test.ping", "test.echo", "network.ip_addrs", "network.ip", "grains.items", "ü", "", "a:b",
		"x\ny", "test.arg")
}

func (d dice) value(depth int) any {
	n := d.IntN(14)
	switch {
	case n < 3:
		return d.one(0, 1, -1, 127, 128, -33, 65536, int64(math.MinInt64), uint64(math.MaxUint64), true, false, nil, 1.5,
			math.NaN())
	case n == 3:
		return ext(d.one("\xca\x3f\x80\x00\x00", "\xcc\x05", "\xcf\x00\x00\x00\x00\x00\x00\x00\x05", "\xd9\x03abc",
			"\xc4\x02\xff\x00", "\xc4\x02ab", "\xda\x00\x01a",
			"\xdc\x00\x01\x01", "\xde\x00\x01\xa1a\x01", "\xc7\x18\x4e20261121T04:05:06.000001", "\xd4\x05x").(string))
	case n < 7 && depth < 4:
		l := list{}
		for range d.IntN(4) {
			l = append(l, d.value(depth+1))
		}
		return l
	case n < 10 && depth < 4:
		m := dict{}
		for i := range d.IntN(5) {
			m = append(m, d.one(strconv.Itoa(i), i, "k"+strconv.Itoa(i)), d.value(depth+1))
		}
		return m
	}
	return d.one("", "a", "10.0.0.1", "ü", "世界🙂", "a\x00b", "\xed\xa0\x80", []byte{0xff, 0},
		strings.Repeat("x", d.IntN(40)), strings.Repeat("é", d.IntN(300)))
}

// target is whom something is for, by a kind.
func (d dice) target() (tgt, kind any) {
	switch d.IntN(12) {
	case 0, 1, 2, 3:
		return d.one("*", "m*", "m?", "w*", "[!m]*", "w[[]1]", "*1", "?", "[", "[]a]*", "M*"), "glob"
	case 4, 5:
		return d.id(), "glob"
	case 6, 7:
		return d.id() + "," + d.id(), "list"
	case 8:
		return list{d.id(), d.id()}, "list"
	case 9:
		return d.one("nobody", "m1,nobody", "", nil, ","), d.one("glob", "list")
	case 10:
		return d.value(2), d.one("glob", "list")
	}
	return d.one("*", "os:x"), d.one("grain", "pcre", "compound", "pillar", "Glob", "", nil, 5)
}

func (d dice) data() dict {
	m := dict{}
	for range d.IntN(5) {
		v := d.value(0)
		if d.odds(3) {
			e := entry(v)
			if !d.odds(4) {
				tgt, kind := d.target()
				if e = append(e, "allow_tgt", tgt); kind != "glob" || d.odds(2) {
					e = append(e, "allow_tgt_type", kind)
				}
			}
			if d.odds(20) {
				e = e.without(d.one("__data__", "__saltmine_acl__"))
			}
			v = e
		}
		fun := d.fun()
		m = append(m.without(fun), fun, v)
	}
	return m
}

func (d dice) load() dict {
	id := d.id()
	switch d.IntN(10) {
	case 0, 1, 2, 3:
		l := load("_mine", id, "data", d.data())
		if d.odds(15) {
			l = l.with("data", d.value(0))
		}
		if d.odds(8) {
			l = l.with("clear", d.value(3))
		}
		return l
	case 4, 5:
		l := load("_mine_delete", id, "fun", d.fun())
		if d.odds(15) {
			l = l.with("fun", d.value(0))
		}
		return l
	case 6:
		return load("_mine_flush", id)
	}
	tgt, kind := d.target()
	l := load("_mine_get", id, "fun", d.one(d.fun(), "test.ping,test.echo", list{d.fun(), d.fun()}, d.fun(), d.value(2)),
		"tgt", tgt)
	if kind != "glob" || d.odds(2) {
		l = append(l, d.one("tgt_type", "tgt_type", "expr_form"), kind)
	}
	return l
}

func random(n int, seed int64) (all []trial) {
	d := dice{rand.New(rand.NewPCG(uint64(seed), 0))}
	for range n {
		all = append(all, trial{load: d.load(), any: true})
	}
	return all
}
