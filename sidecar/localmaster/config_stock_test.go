package localmaster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

// samples are configurations by name: file → text. "@" stands for the test's directory.
var samples = map[string]map[string]string{
	"missing":  {},
	"empty":    {"master": ""},
	"comments": {"master": "# nothing\n\n"},
	"plain":    {"master": "interface: 127.0.0.5\npublish_port: 5505\nret_port: 5506\nuser: salt\nid: m1\n"},
	"yaml 1.1": {"master": "id: 0123\nauto_accept: yes\nopen_mode: On\nunique_jid: off\nkeep_jobs: 1:30\nmax_minions: 0755\n" +
		"a: 1_000\nb: 0x1F\nc: 0b101\nd: 1e5\ne: 1.5e+3\nf: .5\ng: ~\nh: 2001-12-14\ni: !!str 12\nj: 'yes'\nk: y\nl: =x\n" +
		"m: 190:20:30.15\nn: -0755\no: 1.0\np: !!binary aGk=\nq: 0o7\nr: +12\ns: 1_000.5\nt: Null\nu: 08\n"},
	"include": {
		"master":           "include:\n  - extra/*.yml\n  - one.conf\nx: main\nlist: [1]\nid: 5\n",
		"master.d/20.conf": "x: twenty\nlist: [3]\nmap: {b: 2, c: {d: 1}}\n",
		"master.d/10.conf": "x: ten\nlist: [2, 3]\nmap: {a: 1, c: {e: 2}}\ninclude: nested/*.conf\n",
		"master.d/.h.conf": "x: hidden\n", "master.d/note.txt": "x: no conf\n",
		"master.d/nested/n.conf": "nested: true\nlist: [9]\n",
		"extra/a.yml":            "extra: a\nlist: [7]\n", "extra/b.yml": "extra: b\nmap: {z: 0}\n", "one.conf": "one: 1\n",
	},
	"broken include": {"master": "x: main\n", "master.d/a.conf": "x: [\n", "master.d/b.conf": "y: 1\n",
		"master.d/c.conf": "text\n"},
	"default_include": {"master": "default_include: conf.d/*.conf\n", "conf.d/a.conf": "user: bob\n",
		"master.d/a.conf": "user: eve\n"},
	"root_dir":      {"master": "root_dir: @/root\nid: r\nlog_file: file:///dev/log\nkey_logfile: logs/key\npki_dir: pki\ncachedir: @/root/cache\n"},
	"sock_dir":      {"master": "cachedir: /c\nsock_dir: /a/rather/long/path/of/sockets\nid: s\n"},
	"sock_dir fits": {"master": "cachedir: /cache\nsock_dir: /run/salt/master\nid: s\n"},
	"log_dir":       {"master": "log_dir: /logs\nid: l\n"},
	"log_dir file":  {"master": "log_dir: /logs\nlog_file: m.log\nid: l\nextension_modules: ''\n"},
	"append_domain": {"master": "id: m\nappend_domain: example.org\n"},
	"generated id":  {"master": "append_domain: example.org\nminion_id_lowercase: true\n"},
	"cached id":     {"master": "root_dir: @/root\n", "root/etc/salt/minion_id": "cached.example.org\n"},
	"odd ids":       {"master": "id: null\n"},
	"cluster off":   {"master": "id: c\ncluster_peers: [a, b]\ncluster_pki_dir: /x\ncluster_port: 99\n"},
	"cluster on":    {"master": "id: c\ncluster_id: k\ncluster_secret: s\n"},
	"cluster ended": {
		"master":                        "id: c\ncluster_id: k\ncluster_peers: [a, b]\ncluster_pki_dir: /x\ncluster_secret: s\n",
		"master.d/zz-saltclusterd.conf": "cluster_id: null\n",
	},
	"roots": {"master": "id: f\nfile_roots: {base: ['@/g*', /srv/x], nil: null, dev: text}\npillar_roots: nonsense\n" +
		"file_ignore_regex: abc\nfile_ignore_glob: '*.x'\n", "g1/a": "", "g2/a": ""},
	"roots by wildcards": {
		"master": "id: f\nfile_roots: {base: ['@/f*/*/', '@/none*/', '@/f1//*'], dev: ['@/.h*', '@/[!f]*', '@/{a,b}*']}\n" +
			"pillar_roots: {base: ['@/f1/**']}\n",
		"f1/a/x": "", ".hidden/x": "", "f1/.git/x": "", "f2/file": "",
	},
	"question marks": {
		"master": "id: q\nnodegroups: {web: web?, db?: [d??b, 'x?', \"y?\"]}\n# what?\nreactor: [{salt/a: [/srv/a.sls?saltenv=dev, x]}]\n" +
			"text: |\n  a? b\nz: {? k : v, u: http://h/?id=%s&x=?}\n",
	},
	"nothing said": {"master": "id: n\nlog_file:\nipc_mode: ~\nlog_level:\n"},
	"directive":    {"master": "\n# of a tool\n%YAML 1.2\n---\nid: d\nuser: bob\n...\n"},
	"anchors":      {"master": "base: &b {x: 1, y: 2}\nm: {<<: *b, y: 3}\nn: {<<: [{q: 1}, {r: 3}], r: 4}\no: *b\nid: a\n"},
	"workers":      {"master": "id: w\nworker_threads: 1\npeer: {'.*': ['.*']}\nhash_type: SHA512\ntimeout: 7\n"},
	"nodegroup":    {"master": "id: n\nnodegroups:\n  - a: Lx\n  - b: [c, d]\n"},
	"nodegroup none": {"master": "id: n\nnodegroups:\ndiscovery: true\nssl: true\n" +
		"ssh_minion_opts: {gitfs_x: 1, ok: 2, pillar_x: 3}\nfileserver_backend: [git, roots, hg]\n"},
	"eauth": {"master": "id: e\nexternal_auth: {rest: {'^u': [x]}}\nenvironment: dev\nipc_write_buffer: 5\n"},
	"transports ended": {
		"master":                        "id: t\ntransport: tcp\ntransport_opts: {ws: {publish_port: 1}}\nssl: {certfile: c}\n",
		"master.d/zz-saltclusterd.conf": "transport: zeromq\ntransport_opts: {}\n",
	},
	"transports that an included file has": {
		"master":                        "id: t\n",
		"master.d/a.conf":               "transport_opts: {ws: {publish_port: 1}}\n",
		"master.d/zz-saltclusterd.conf": "transport: zeromq\ntransport_opts: {}\n",
	},
	"drop-in": {"master": "id: d\ninterface: 0.0.0.0\n",
		"master.d/zz-saltclusterd.conf": "interface: 127.0.0.1\nmaster_id: n1\nunique_jid: True\nkeys.cache_driver: localfs_key\n"},
}

const dumpOpts = `
import json, logging, sys
logging.disable(logging.CRITICAL)
import salt.config
from collections.abc import Mapping

def plain(v):
    if isinstance(v, Mapping):
        return {str(k): plain(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if isinstance(v, bytes):
        return v.decode()
    return v

for path in sys.argv[1:]:
    try:
        print(json.dumps(plain(dict(salt.config.master_config(path)))))
    except (Exception, SystemExit) as err:
        print(json.dumps({"error": repr(err)}))
`

// notCompared depend on the process, not on the configuration.
var notCompared = map[string]bool{"__cli": true}

func TestConfigAsSaltComputesIt(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) { compareAll(t, v) })
	}
}

func compareAll(t *testing.T, version string) {
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	var names, paths []string
	for name := range samples {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		paths = append(paths, writeSample(t, samples[name]))
	}
	lines := splitLines(mastertest.Python(t, version, dumpOpts, paths...))
	if len(lines) != len(names) {
		t.Fatalf("%d answers for %d samples", len(lines), len(names))
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			cfg, err := localmaster.LoadConfig(paths[i], ver)
			require.NoError(t, err)
			compare(t, cfg, lines[i])
		})
	}
}

// unread are configurations with a file that cannot be read. A master does not start with them, nor do we go on without
// what may stand there.
var unread = map[string]map[string]string{
	"a directory":       {"master": "id: u\n", "master.d/a.conf/b": "", "master.d/b.conf": "user: bob\n"},
	"a link to nothing": {"master": "id: u\n", "master.d/b.conf": "user: bob\n"},
	"in an include":     {"master": "id: u\ninclude: more/*\n", "more/a/b": ""},
	"includes include":  {"master": "id: u\n", "master.d/a.conf": "include: '*.conf'\n"},
}

func TestConfigThatCannotBeRead(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		ver, err := localmaster.ParseVersion(v)
		require.NoError(t, err)
		for name, files := range unread {
			path := writeSample(t, files)
			if name == "a link to nothing" {
				require.NoError(t, os.Symlink("nowhere", filepath.Join(filepath.Dir(path), "master.d/a.conf")))
			}
			if cfg, err := localmaster.LoadConfig(path, ver); err == nil {
				t.Errorf("%s, %s: read, with user %s", v, name, cfg.User)
			}
			if said := mastertest.Python(t, v, dumpOpts, path); !strings.HasPrefix(said, `{"error"`) {
				t.Errorf("%s, %s: Salt reads it: %.200s", v, name, said)
			}
		}
	}
}

func compare(t *testing.T, cfg *localmaster.Config, stock string) {
	t.Helper()
	var want map[string]any
	require.NoError(t, json.Unmarshal([]byte(stock), &want))
	for name, w := range want {
		raw, ok := cfg.Raw(name)
		if notCompared[name] {
			continue
		}
		if got := viaJSON(t, raw); !ok || !reflect.DeepEqual(got, w) {
			t.Errorf("%s: got %s, Salt has %s", name, show(got), show(w))
		}
	}
	for _, name := range cfg.Names() {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: Salt has no such option", name)
		}
	}
}

func writeSample(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(replaceDir(text, dir)), 0o644))
	}
	return filepath.Join(dir, "master")
}

func viaJSON(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err, v)
	var out any
	require.NoError(t, json.Unmarshal(text, &out))
	return out
}

func show(v any) string { return fmt.Sprintf("%T %.300v", v, v) }
