package fileservetest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/saltwire"
)

// stamp is the mtime of every file of the corpus.
var stamp = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// Corpus is a directory with roots.
type Corpus struct{ Dir string }

// New makes the trees in a directory of the test's: links in, out and in circles, empty things, odd names, environments
// that shadow.
func New(t testing.TB) *Corpus {
	t.Helper()
	c := &Corpus{t.TempDir()}
	text := func(n int) string { return strings.Repeat("The quick brown fox. ", n/21+1)[:n] }
	for name, content := range map[string]string{
		"base/top.sls": "base:\n", "base/empty": "", "base/big.bin": text(150_000), "base/exact": text(4096), "base/one": "1",
		"base/dir/file": "in dir", "base/dir/sub/deep": "deep", "base/dirt": "not dir", "base/naïve/föö.txt": "unicode",
		"base/日本/語": "japanese", "base/with space/a b": "space", "base/dots/..name": "dots", "base/dots/.hidden": "hidden",
		"base/.git/config": "git", "base/x/.git/config": "git", "base/skip.bak": "ignored by glob",
		"base/dir/other.bak": "ignored",
		"base/a:b":           "colon", "base/a//b": "slashes", "base/pipe|name": "pipe", "base/shadow": "from the first root",
		"base/quest": "quest", "base/quest?saltenv=dev": "query", "base/ends~": "tilde",
		"base2/shadow": "from the second root", "base2/second": "only in the second", "base2/dir/second": "merged",
		"dev/dev.sls": "dev", "dev/shadow": "dev's", "dyn/qa/qa.sls": "dynamic", "dyn/outside": "not in an environment",
		"out/secret": "out of the roots", "loops/in/one": "1", "loops/other/file": "beside the root", "out/tree/leaf": "leaf",
		"qa/qa/qa.sls":       "twice",
		"base/" + named(243): "the longest that has a SHA-256", "base/" + named(244): "too long for one",
		"base/" + named(255):  "longest",
		"odd/here/there/file": "behind the link", "odd/there/file": "beside the link", "odd/only": "only beside the link",
		"odd/here/only2": "only behind the link",
		"base/trail ":    "space", "base/back\\slash": "backslash", "base/q\u2028x": "line separator",
	} {
		c.put(t, name, content, 0o644)
	}
	c.put(t, "base/script", "#!/bin/sh\n", 0o755)
	for _, dir := range []string{"base/void", "base/dir/void", "base/.git/void", "base2/void", "empty", "dev/x/y/z"} {
		c.mkdir(t, dir)
	}
	for name, dest := range map[string]string{
		"base/link": "top.sls", "base/dir/up": "../top.sls", "base/dir/far": "../../base/one", "base/linkdir": "dir",
		"base/out": "../out/secret", "base/outdir": "../out/tree", "base/dangling": "nothing/here", "base/self": "self",
		"base/circle1": "circle2", "base/circle2": "circle1", "base/abs": c.path("base/one"),
		"base/absout":  c.path("out/secret"),
		"base/toempty": "void", "loops/in/dotdot": "..", "base/chain": "link", "base2/cross": "../base/one",
		"base/bak":      "skip.bak",
		"base/dir/back": "../dir/file", "odd/jump": "here/there", "rootlink": "base2", "rootloop": "rootloop",
	} {
		if err := os.Symlink(dest, c.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	c.put(t, "bytes/plain", "plain", 0o644)
	c.put(t, "bytes/b\xff\xfe", "not UTF-8", 0o644)
	return c
}

// named is a name of n bytes, n of three digits.
func named(n int) string { return fmt.Sprint(n) + strings.Repeat("l", n-3) }

func (c *Corpus) path(name string) string { return filepath.Join(c.Dir, name) }

func (c *Corpus) mkdir(t testing.TB, name string) {
	t.Helper()
	if err := os.MkdirAll(c.path(name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (c *Corpus) put(t testing.TB, name, content string, mode os.FileMode) {
	t.Helper()
	c.mkdir(t, filepath.Dir(name))
	if err := os.WriteFile(c.path(name), []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(c.path(name), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(c.path(name), stamp, stamp); err != nil {
		t.Fatal(err)
	}
}

// Setting is a master's configuration; @ stands for the corpus's directory.
type Setting struct{ Name, Config string }

const roots = "file_roots:\n  base: [@/base, @/base2/]\n  dev: [@/dev, @/nowhere]\n  bytes: [@/bytes]\n  void: [@/empty]\n  none: []\n  loops: [@/loops/in]\n  up: [@/odd/jump/../, @/odd/jump/../there]\n" +
	"file_buffer_size: 4096\n"

// oddRoots are links, circles, files and other ways to write a directory, inside each other; and names of environments.
const oddRoots = "file_roots:\n  base: [@/rootlink, '@/base/../base/dir', '@/base//x/', '@/base/one', '@/base', '@/base2', '@/rootloop', '@/base']\n" +
	"  dev: ['@/dev/../dev', '@/dev/./x']\n  'a:b': [@/dev]\n  '1': [@/dev]\n  '*': [@/dev]\n  'qa/x': [@/dev]\n  ünï: [@/dev]\n  bytes: [@/bytes]\n" +
	"file_buffer_size: 4096\n"

// Settings are the configurations of the comparison.
var Settings = []Setting{
	{"default", roots},
	{"nofollow", roots + "fileserver_followsymlinks: False\nhash_type: md5\n"},
	{"nolinks", roots + "fileserver_ignoresymlinks: True\nhash_type: SHA512\n"},
	{"ignore", roots +
		"file_ignore_glob: ['*.bak', '*/sub/*', '.g[i]t', 'void']\nfile_ignore_regex: ['/\\.git($|/)', '^dir/[a-f]+$']\n"},
	{"dynamic", strings.Replace(roots, "file_roots:\n", "file_roots:\n  __env__: [@/dyn/__env__, '@/dev']\n", 1) +
		"fileserver_followsymlinks: False\n"},
	{"buffer", strings.Replace(roots, "4096", "1048576", 1) + "hash_type: sha1\nfileserver_list_cache_time: 0\n"},
	{"odd roots, nofollow", oddRoots + "fileserver_followsymlinks: False\n"},
	{"two dynamic", "file_roots:\n  __env__: [@/dyn/__env__, '@/__env__/__env__', '@/dyn']\n  bytes: [@/bytes]\nfile_buffer_size: 4096\n"},
	{"more backends", roots + "fileserver_backend: [roots, minion]\n"},
}

// Comparable leaves out what we mean to answer in another way than a stock master with that configuration.
func (s Setting) Comparable(all []Ask) []Ask {
	return slices.DeleteFunc(all, func(a Ask) bool { return a.Diverges && strings.Contains(s.Config, "__env__") })
}

// Ask is one request.
type Ask struct {
	Name, Cmd string
	Load      []byte
	Fields    map[string]any // what Load was made of; nil: our encoder does not make such a load
	Diverges  bool           // with __env__: its environment leads out of the place of that, which we do not follow
	Harms     bool           // a worker of a stock master is good for nothing after it
}

// Asks are all requests of the corpus.
func Asks() []Ask { return append(asks(), rawAsks()...) }

func asks() []Ask {
	var out []Ask
	add := func(cmd string, load map[string]any) {
		load["cmd"], load["id"] = cmd, "web1"
		name := cmd
		for _, k := range []string{"path", "saltenv", "loc", "gzip", "prefix", "fsbackend", "back", "sources", "env"} {
			if v, ok := load[k]; ok {
				name += fmt.Sprintf(" %s=%.80q", k, fmt.Sprint(v))
			}
		}
		out = append(out, newAsk(name, cmd, load))
	}
	for _, path := range paths {
		for _, env := range []string{"base", "dev"} {
			add("_file_find", map[string]any{"path": path, "saltenv": env})
			add("_file_hash", map[string]any{"path": path, "saltenv": env})
			add("_file_hash_and_stat", map[string]any{"path": path, "saltenv": env})
			add("_serve_file", map[string]any{"path": path, "saltenv": env, "loc": 0})
		}
	}
	for _, env := range envs {
		for _, cmd := range lists {
			if env == Unlistable {
				break
			}
			for _, prefix := range []any{nil, "", "dir", "dir/", "/dir", "/", "d", "nothing", "日", "top.sls"} {
				load := map[string]any{"saltenv": env}
				if prefix != nil {
					load["prefix"] = prefix
				}
				add(cmd, load)
			}
		}
		for _, path := range []string{"qa.sls", "shadow", "second", "outside", "one", "dev.sls", "secret", "b\xff\xfe",
			"plain"} {
			add("_file_find", map[string]any{"path": path, "saltenv": env})
			add("_file_hash", map[string]any{"path": path, "saltenv": env})
			add("_serve_file", map[string]any{"path": path, "saltenv": env, "loc": 0})
		}
	}
	for _, path := range []string{"dotdot", "dotdot/other/file", "dotdot/in/one", "dotdot/../one"} {
		add("_file_find", map[string]any{"path": path, "saltenv": "loops"})
		add("_serve_file", map[string]any{"path": path, "saltenv": "loops", "loc": 0})
	}
	for _, path := range []string{"file", "there/file", "only", "only2"} { // below a root whose ".." is behind a link
		for _, cmd := range []string{"_file_find", "_file_hash", "_serve_file"} {
			add(cmd, map[string]any{"path": path, "saltenv": "up", "loc": 0})
		}
	}
	for _, loc := range []any{0, 1, 4095, 4096, 8192, 149_999, 150_000, 150_001, 1 << 40, -1, 1.5, 2.0, "0", nil, true,
		uint64(1 << 63), []any{1}} {
		for _, path := range []string{"big.bin", "exact", "empty", "one", "missing"} {
			add("_serve_file", map[string]any{"path": path, "saltenv": "base", "loc": loc})
		}
	}
	for _, gzip := range []any{nil, false, true, 0, 1, 5, 6, 9, 10, -1, "5", 5.0, []any{}} {
		for _, path := range []string{"big.bin", "empty", "missing"} {
			add("_serve_file", map[string]any{"path": path, "saltenv": "base", "loc": 4096, "gzip": gzip})
			add("_serve_file", map[string]any{"path": path, "saltenv": "base", "loc": 0, "gzip": gzip})
		}
	}
	for _, cmd := range []string{"_serve_file", "_file_find", "_file_hash", "_file_hash_and_stat", "_file_list",
		"_dir_list", "_symlink_list", "_file_list_emptydirs", "_file_envs"} {
		for _, load := range []map[string]any{
			{}, {"path": "one"}, {"saltenv": "base"}, {"path": "one", "loc": 0}, {"path": "one", "saltenv": 1, "loc": 0},
			{"path": 1, "saltenv": "base", "loc": 0}, {"path": nil, "saltenv": "base", "loc": 0},
			{"path": []any{"one"}, "saltenv": "base", "loc": 0},
			{"path": "one", "saltenv": nil, "loc": 0}, {"path": "one", "saltenv": "base", "loc": 0, "env": "dev"},
			{"path": "one", "saltenv": "base", "loc": 0, "prefix": 1},
			{"path": "one", "saltenv": "base", "loc": 0, "prefix": nil},
			{"path": "one", "saltenv": "base", "loc": 0, "fsbackend": "roots"},
			{"path": "one", "saltenv": "base", "loc": 0, "fsbackend": "-roots"},
			{"path": "one", "saltenv": "base", "loc": 0, "fsbackend": nil, "back": nil, "sources": nil},
			{"path": "one", "saltenv": "base", "loc": 0, "back": "roots", "sources": true},
			{"path": "one", "saltenv": "base", "loc": 0, "back": "other"}, {"path": "", "saltenv": "base", "loc": 0},
			{"saltenv": "base", "fsbackend": "gitfs,roots", "back": "x,y"},
			{"saltenv": "base", "fsbackend": []any{"roots"}, "back": []any{"roots", "-roots"}},
			{"saltenv": "base", "fsbackend": "", "back": ""}, {"saltenv": "base", "fsbackend": []any{}, "back": []any{}},
			{"saltenv": "base", "fsbackend": "-gitfs", "back": "-roots"},
			{"saltenv": "base", "fsbackend": []any{"-roots"}, "back": "-roots,roots"},
			{"saltenv": "base", "fsbackend": 1, "back": true}, {"saltenv": "base", "fsbackend": []any{1}, "back": false},
			{"path": "one", "saltenv": true, "loc": 0}, {"path": false, "saltenv": "base", "loc": 0},
			{"path": "one", "saltenv": "base", "loc": 0, "strange": map[string]any{"path": "two"}},
		} {
			if !slices.Contains(lists, cmd) || load["saltenv"] != Unlistable {
				add(cmd, load)
			}
		}
	}
	return out
}

func newAsk(name, cmd string, load map[string]any) Ask {
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	if err != nil {
		panic(err)
	}
	one := Ask{Name: name, Cmd: cmd, Load: plain, Fields: load}
	if env, ok := load["saltenv"].(string); ok && leaves(env) {
		one.Diverges = true
	}
	for _, key := range []string{"fsbackend", "back"} {
		one.Harms = one.Harms || strings.Contains(fmt.Sprint(load[key]), "-")
	}
	return one
}

// leaves says whether an environment would be looked for outside of its place.
func leaves(env string) bool {
	out := env == "" || env[0] == '/'
	for _, part := range strings.Split(env, "/") {
		out = out || part == "." || part == ".."
	}
	return out
}

var lists = []string{"_file_list", "_dir_list", "_file_list_emptydirs", "_symlink_list"}

// Unlistable is an environment with a name that is not UTF-8. A stock master fails to keep its list, leaves a lock
// behind and waits for that at every further request.
const Unlistable = "bytes"

var envs = []string{
	"base", "dev", "void", "none", "bytes", "qa", "qa/", "qa//", "nope", "", "..", "../out", "qa/..", "/", ".", "__env__",
	"a/b", "Base", "日本",
	"x\ny", "a:b", "1", "*", "ünï", "qa/x", "qa%2Fx", " qa", "QA", strings.Repeat("e", 300),
}

var paths = []string{
	"top.sls", "empty", "big.bin", "exact", "one", "dir/file", "dir/sub/deep", "dirt", "naïve/föö.txt", "日本/語",
	"with space/a b",
	"dots/..name", "dots/.hidden", ".git/config", "x/.git/config", "skip.bak", "dir/other.bak", "a:b", "a//b", "pipe|name",
	"shadow",
	named(243), named(244), named(255), "trail ",
	"back\\slash", "q\u2028x",
	"second", "dir/second", "script", "link", "dir/up", "dir/far", "linkdir", "linkdir/file", "linkdir/sub/deep", "out",
	"outdir",
	"outdir/leaf", "dangling", "self", "circle1", "abs", "absout", "toempty", "chain",
	"cross", "bak", "dir/back", "dir", "dir/", "dir/file/", "dir/file/x", "void", ".", "..", "./one", "dir/./file",
	"dir/..", "dir/../one",
	"deep", "sub/deep", "file", "..name", "base/one", "qa/qa.sls", "one/", "one/.", "dir/file/.", "dir/file/..", "void/.",
	"one?x=../one", "/one?x=1",
	"../out/secret", "dir/../../out/secret", "/etc/passwd", "//etc/passwd", "/", "", "missing", "dir/missing",
	"missing/missing",
	"one?saltenv=dev", "dev.sls?saltenv=dev", "shadow?index=1", "shadow?index=9", "shadow?index=x", "one?", "one?foo=bar",
	"quest?saltenv=dev",
	"|quest?saltenv=dev", "|one", "||one", "salt://one", "salt://|one", "SALT:one", "salt:one", "file:///etc/passwd",
	"a://[b", "x:y", "://",
	"one\x00", "one\n", "\none", " one", "one ", "\tone", "o\x7fne", "b\xff\xfe", "ends~", strings.Repeat("d/", 200) + "x",
	strings.Repeat("n", 300),
	strings.Repeat("p/", 2500) + "x", "dots/../..name", "dev.sls", "dev", "x/y/z", "..name", "dots/..name/..", "a:", ":b",
	"dir//file", "dir/sub/../file",
}

// raw loads that no encoder of ours makes.
func rawAsks() []Ask {
	body := func(parts ...string) []byte { return []byte(strings.Join(parts, "")) }
	return []Ask{
		{Name: "bin text", Cmd: "_file_hash", Load: body("\x82\xa4path\xc4\x03one\xa7saltenv\xc4\x04base")},
		{Name: "str8 text", Cmd: "_file_hash", Load: body("\x82\xa4path\xd9\x03one\xa7saltenv\xd9\x04base")},
		{Name: "path twice", Cmd: "_file_hash", Load: body("\x83\xa4path\xa3two\xa4path\xa3one\xa7saltenv\xa4base")},
		{Name: "extension", Cmd: "_file_hash", Load: body("\x82\xa4path\xc7\x03\x05one\xa7saltenv\xa4base")},
		{Name: "bin keys", Cmd: "_file_hash", Load: body("\x82\xc4\x04path\xa3one\xc4\x07saltenv\xa4base")},
		{Name: "wide integers", Cmd: "_serve_file",
			Load: body("\x83\xa4path\xa3one\xa7saltenv\xa4base\xa3loc\xcf\x00\x00\x00\x00\x00\x00\x00\x00")},
		{Name: "text that is no UTF-8", Cmd: "_serve_file",
			Load: body("\x83\xa4path\xa3\xed\xa0\x80\xa7saltenv\xa4base\xa3loc\x00")},
	}
}

// Fill puts the corpus's place into a configuration.
func (c *Corpus) Fill(config string) string { return strings.ReplaceAll(config, "@", c.Dir) }
