//go:build integration

package parity

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// site is a master's configuration as somebody has it, and what belongs to it on disk.
type site struct {
	name     string
	version  string
	settings lab.Settings
	prepare  func(root string) error // below the master's root_dir, before its first start
	steps    []Step
	more     []string // versions of further masters of the cluster
}

const siteReturner = `
import json
def _put(what, **data):
    with open(__opts__["cachedir"] + "/site-" + what, "a") as f:
        f.write(json.dumps(data, sort_keys=True, default=repr) + "\n")
def returner(ret):
    _put("returns", id=ret.get("id"), fun=ret.get("fun"), ret=ret.get("return") if ret.get("fun") in ("test.ping", "test.echo") else None, keys=sorted(ret))
def event_return(events):
    for e in events:
        _put("events", tag=e.get("tag"), keys=sorted(e.get("data", {})))
def save_load(jid, load, minions=None):
    _put("loads", fun=load.get("fun"), minions=sorted(minions or []), keys=sorted(load))
def save_minions(jid, minions, syndic_id=None):
    _put("minions", minions=sorted(minions))
def get_load(jid):
    return {}
def get_jid(jid):
    return {}
def get_fun(fun):
    return {}
def get_jids():
    return {}
def get_minions():
    return []
def prep_jid(nocache=False, passed_jid=None):
    import salt.utils.jid
    return passed_jid if passed_jid is not None else salt.utils.jid.gen_jid(__opts__)
`

const siteRunner = `
import json
def note(tag, keys):
    with open(__opts__["cachedir"] + "/site-reacted", "a") as f:
        f.write(json.dumps([tag, keys]) + "\n")
    return True
`

const siteReaction = `
note:
  runner.sitelog.note:
    - args:
        - tag: {{ tag | yaml_dquote }}
        - keys: {{ data.keys() | sort | join(",") | yaml_dquote }}
`

func putFiles(root string, files map[string]string) error {
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// py runs a script with Salt's Python; its argument is the master's main file.
func py(name, script string) Step {
	return Step{Name: name, Argv: []string{"python", "-c", script}}
}

// tree lists names, modes and owners below directories of the master, with ids and hashes taken out.
const treeScript = `
import os, re, stat, salt.config, sys, glob
opts = salt.config.master_config(%q)
seen = set()
for top in ("cachedir", "pki_dir"):
    base = os.path.realpath(opts[top])
    for d, dirs, files in os.walk(base):
        for n in [""] + files:
            p = os.path.join(d, n) if n else d
            s = os.lstat(p)
            r = os.path.relpath(p, base)
            if "/roots/hash" in "/" + r or r.startswith(("proc", "extmods", "site", "files/base", "sessions")) or "/.saltcluster" in "/" + r: continue
            r = re.sub(r"[0-9a-f]{32,}|[0-9a-f]{30,}", "<h>", r)
            r = re.sub(r"jobs/[0-9a-f]{2}\b", "jobs/<h>", r)
            seen.add("%%s %%s %%s:%%s %%s" %% (top, stat.filemode(s.st_mode), s.st_uid, s.st_gid, r))
print("\n".join(sorted(seen)))
`

const catScript = `
import salt.config, collections
opts = salt.config.master_config(%q)
for n in ("returns", "events", "loads", "minions", "reacted"):
    try: lines = open(opts["cachedir"] + "/site-" + n).read().splitlines()
    except OSError: continue
    print("==", n)
    import re
    for line in sorted(set(re.sub(r"\b20\d{18}(_\d+)?\b", "J", l) for l in lines if "unused" not in l)): print(line)
`

func confSteps(dir string) []Step {
	conf := filepath.Join(dir, "master")
	return []Step{
		py("tree", fmt.Sprintf(treeScript, conf)),
		py("site files", fmt.Sprintf(catScript, conf)),
	}
}

func common(minion string) []Step {
	s := []Step{
		text("keys", "salt-key", "-L"),
		salt("ping", "*", "test.ping"),
		salt("echo", "*", "test.echo", "hello"),
		salt("fail", "*", "test.exception", "message=no"),
		salt("nodegroup", "-N", "old", "test.ping"),
		salt("apply", minion, "state.apply"),
		salt("sync", minion, "saltutil.sync_all"),
		salt("list", "*", "cp.list_master"),
		salt("list dev", "*", "cp.list_master", "dev"),
		salt("dirs", minion, "cp.list_master_dirs"),
		salt("links", minion, "cp.list_master_symlinks"),
		salt("states", minion, "cp.list_states"),
		salt("hash", minion, "cp.hash_file", "salt://big.bin"),
		salt("hash link", minion, "cp.hash_file", "salt://link.txt"),
		salt("get link", minion, "cp.get_file_str", "salt://link.txt"),
		salt("get in linked dir", minion, "cp.get_file_str", "salt://linkdir/a.txt"),
		salt("get ignored", minion, "cp.get_file_str", "salt://skip.me"),
		salt("get ignored by expression", minion, "cp.get_file_str", "salt://.svn/x"),
		salt("get with spaces", minion, "cp.get_file_str", "salt://a dir/b c.txt"),
		salt("get dev", minion, "cp.get_file_str", "salt://only-dev.txt", "saltenv=dev"),
		salt("get env", minion, "cp.get_file_str", "salt://only-dyn.txt", "saltenv=dyn"),
		salt("get big", minion, "cp.get_file", "salt://big.bin", "/tmp/site-big.bin"),
		salt("top", minion, "state.show_top"),
		salt("mine send", minion, "mine.send", "test.arg", "a", "b"),
		salt("mine get", "*", "mine.get", "*", "test.arg"),
		salt("mine get nodegroup", "*", "mine.get", "old", "test.arg", "nodegroup"),
		salt("mine get grain", "*", "mine.get", "os:*", "test.arg", "grain"),
		run("mine runner", "mine.get", "*", "test.arg"),
		salt("mine update", minion, "mine.update"),
		salt("mine get configured", "*", "mine.get", "*", "network.interfaces_x"),
		salt("mine get own", "*", "mine.get", "*", "mined"),
		salt("mine delete", minion, "mine.delete", "test.arg"),
		salt("mine get after", "*", "mine.get", "*", "test.arg"),
		call(minion, "event", "event.send", "lab/one", "{a: 1}"),
		call(minion, "big event", "event.send", "lab/big", "text="+strings.Repeat("x", 9000)),
		call(minion, "auth event", "event.send", "salt/beacon/"+minion+"/load/", "{x: 1}"),
		call(minion, "ping", "test.ping"),
		call(minion, "publish", "publish.publish", "*", "test.ping"),
		call(minion, "runner", "publish.runner", "manage.up"),
		call(minion, "push", "cp.push", "/etc/hostname"),
		salt("token", "-a", "auto", "--username", "bob", "--password", "x", "-T", "*", "test.ping"),
		run("up", "manage.up"),
		{Name: "jobs", Argv: []string{"salt-run", "--out=txt", "jobs.list_jobs", "search_function=test.ping"}, Lines: true,
			Drop: []*regexp.Regexp{regexp.MustCompile("StartTime")}},
		run("active", "jobs.active"),
		text("reload", "salt-run", "fileserver.clear_file_list_cache"),
		run("files of the master", "fileserver.file_list"),
	}
	return s
}

func sites() []site {
	base := func(root string) error {
		big := strings.Repeat("0123456789abcdef", 4096)
		err := putFiles(root, map[string]string{
			"srv/salt/big.bin": big, "srv/salt/skip.me": "s", "srv/salt/.svn/x": "svn", "srv/salt/a dir/b c.txt": "space",
			"srv/outside/a.txt": "outside a", "srv/outside/t.txt": "outside t", "srv/salt/x.pyc": "pyc",
			"srv/dev/only-dev.txt": "dev",
			"srv/dev/top.sls":      "dev:\n  '*':\n    - nothing\n", "srv/dev/nothing.sls": "n:\n  test.nop\n",
			"srv/envs/dyn/only-dyn.txt": "dyn", "srv/extra/e1.txt": "e1",
			"ext/returners/sitecache.py": siteReturner, "ext/runners/sitelog.py": siteRunner,
			"srv/reactor/note.sls":         siteReaction,
			"srv/salt/_modules/sitemod.py": "def hi():\n    return 'hi'\n",
			"srv/salt/_grains/siteg.py":    "def g():\n    return {'siteg': 5}\n",
		})
		if err != nil {
			return err
		}
		for link, to := range map[string]string{"link.txt": "../outside/t.txt", "linkdir": "../outside",
			"dangling": "nowhere", "inside": "big.bin"} {
			_ = os.Remove(filepath.Join(root, "srv/salt", link))
			if err := os.Symlink(to, filepath.Join(root, "srv/salt", link)); err != nil {
				return err
			}
		}
		return nil
	}
	asNobody := func(name string, args string) Step {
		return py(name, "import os, sys; d = os.path.dirname(sys.executable); os.setgroups([]); os.setgid(65534); os.setuid(65534); os.environ['HOME'] = '/nonexistent'\n"+
			"os.execv(d + '/salt', ['salt', '-c', '{CONF}', '--out=json', "+args+"])")
	}
	return []site{
		{
			name: "user", version: "3006.28", more: []string{"3008.3"}, prepare: base,
			settings: lab.Settings{
				"user": "daemon", "extension_modules": "{ROOT}/ext", "file_recv": true,
				"fileserver_backend":      []string{"roots", "minionfs"},
				"publisher_acl":           map[string]any{"nobody": []string{"test.*"}},
				"publisher_acl_blacklist": map[string]any{"modules": []string{"test.fib"}},
				"external_auth":           map[string]any{"auto": map[string]any{"bob": []string{".*"}}}, "client_acl_verify": false,
				"nodegroups": map[string]any{"old": "min06*"}, "peer": map[string]any{".*": []string{".*"}},
				"peer_run":   map[string]any{".*": []string{".*"}},
				"file_roots": map[string]any{"base": []string{"{ROOT}/srv/salt"}, "dev": []string{"{ROOT}/srv/dev"}},
			},
			steps: []Step{
				asNobody("nobody may", "'*', 'test.ping'"), asNobody("nobody may not", "'*', 'cmd.run', 'id'"),
				asNobody("nobody is kept from", "'*', 'test.fib', '5'"),
			},
		},
		{
			name: "site", version: "3008.3", prepare: base,
			settings: lab.Settings{
				"ext_job_cache": "sitecache", "event_return": "sitecache",
				"event_return_whitelist": []string{"salt/auth", "salt/minion/*/start", "salt/job/*/ret/*", "lab/*", "salt/beacon/*",
					"minion_start"},
				"reactor": []any{
					map[string]any{"salt/auth": []string{"{ROOT}/srv/reactor/note.sls"}},
					map[string]any{"salt/minion/*/start": []string{"{ROOT}/srv/reactor/note.sls"}},
					map[string]any{"salt/job/*/ret/*": []string{"{ROOT}/srv/reactor/note.sls"}},
					map[string]any{"lab/*": []string{"salt://../reactor/note.sls", "{ROOT}/srv/reactor/note.sls"}},
				},
				"hash_type": "MD5", "file_buffer_size": 4096, "file_ignore_glob": "*.pyc",
				"file_ignore_regex":         []string{`/\.svn($|/)`, "^skip"},
				"fileserver_followsymlinks": false, "top_file_merging_strategy": "same", "pillar_cache": true, "con_cache": true,
				"max_event_size": 4000, "keep_jobs_seconds": 0, "ping_on_rotate": true, "publish_session": 600,
				"external_auth": map[string]any{"auto": map[string]any{"bob": []string{".*"}}}, "token_expire": 3600,
				"eauth_acl_module":  "",
				"publisher_acl":     map[string]any{"nobody": []string{"test.*"}},
				"nodegroups":        []any{map[string]any{"old": "L@min06-1"}, map[string]any{"new": "min08-1"}},
				"extension_modules": "{ROOT}/ext", "cachedir": "{ROOT}/c link", "pki_dir": "{ROOT}/pki link",
				"sock_dir": "{ROOT}/s",
				"file_roots": map[string]any{"base": []string{"{ROOT}/srv/salt", "{ROOT}/srv/extra/"},
					"dev": []string{"{ROOT}/srv/dev"}, "__env__": []string{"{ROOT}/srv/envs/__env__"}},
				"file_recv": true, "file_recv_max_size": 1, "ipv6": true, "rotate_aes_key": false, "autosign_timeout": 5,
				"peer": map[string]any{".*": []string{".*"}}, "peer_run": map[string]any{".*": []string{".*"}},
			},
		},
		{
			name: "bare cache", version: "3006.28", prepare: base,
			settings: lab.Settings{
				"job_cache": false, "minion_data_cache": false, "enforce_mine_cache": true, "worker_threads": 1,
				"hash_type":    "sha512",
				"event_return": "sitecache", "fileserver_ignoresymlinks": true, "fileserver_limit_traversal": true,
				"fileserver_verify_config": false,
				"file_ignore_glob":         []string{"*.pyc", "skip*"}, "fileserver_backend": []string{"roots", "minion"},
				"file_recv":         true,
				"extension_modules": "{ROOT}/ext", "order_masters": true,
				"external_auth": map[string]any{"auto": map[string]any{"bob": []string{".*"}}},
				"nodegroups":    map[string]any{"old": "min06*"}, "peer": map[string]any{".*": []string{".*"}},
				"file_roots": map[string]any{"base": []string{"{ROOT}/srv/sal*", "{ROOT}/srv/ex*/"},
					"dev": []string{"{ROOT}/srv/dev"}},
				"state_events": true, "client_acl_verify": false, "zmq_filtering": true, "key_cache": "sched",
				"permissive_pki_access": true, "gather_job_timeout": 15, "timeout": 15,
			},
		},
		{
			name: "own cache", version: "3007.15", prepare: base,
			settings: lab.Settings{
				"master_job_cache": "sitecache", "event_return": []string{"sitecache"}, "extension_modules": "{ROOT}/ext",
				"minion_data_cache": false, "worker_threads": 4, "mine_get": map[string]any{"min06.*": []string{"test.*"}},
				"nodegroups":                 map[string]any{"old": []string{"min06*"}},
				"external_auth":              map[string]any{"auto": map[string]any{"bob": []string{".*"}}},
				"fileserver_list_cache_time": 0, "hash_type": "sha384", "ipc_write_buffer": "dynamic",
				"permissive_pki_access": true,
				"file_roots": map[string]any{"base": []string{"{ROOT}/srv/salt"},
					"dev": []string{"{ROOT}/srv/dev", "{ROOT}/srv/none"}, "dyn": []string{}},
			},
		},
	}
}

func subst(v any, root string) any {
	switch v := v.(type) {
	case string:
		return strings.ReplaceAll(v, "{ROOT}", root)
	case []string:
		out := []any{}
		for _, s := range v {
			out = append(out, subst(s, root))
		}
		return out
	case []any:
		out := []any{}
		for _, s := range v {
			out = append(out, subst(s, root))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, s := range v {
			out[k] = subst(s, root)
		}
		return out
	}
	return v
}

func (s site) lay(t *testing.T, m *lab.Master) {
	root := m.Host().Dir()
	labtest.Must(t, s.prepare(root))
	set := lab.Settings{"timeout": 15, "gather_job_timeout": 15, "master_id": "m1"}
	for k, v := range s.settings {
		set[k] = subst(v, root)
	}
	if len(s.more) > 0 {
		set["master_id"] = m.Host().Name
	}
	if set["cachedir"] != nil {
		for link, usual := range map[string]string{"c link": "var/cache/salt/master", "pki link": "etc/salt/pki/master"} {
			labtest.Must(t, os.MkdirAll(filepath.Join(root, usual), 0o755))
			labtest.Must(t, os.Symlink(filepath.Join(root, usual), filepath.Join(root, link)))
		}
		labtest.Must(t, os.MkdirAll(filepath.Join(root, "s"), 0o755))
		labtest.Must(t, os.MkdirAll(filepath.Join(root, "var/run/salt"), 0o755))
		_ = os.Remove(filepath.Join(root, "var/run/salt/master"))
		labtest.Must(t, os.Symlink(filepath.Join(root, "s"), filepath.Join(root, "var/run/salt/master")))
	}
	labtest.Must(t, m.Configure(set))
	if name, ok := set["user"].(string); ok {
		uid := idOf(t, name)
		for _, dir := range []string{"var", "etc/salt/pki"} {
			labtest.Must(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
			labtest.Must(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
				return errors.Join(err, os.Lchown(path, uid, -1))
			}))
		}
	}
}

func idOf(t *testing.T, name string) int {
	t.Helper()
	u, err := user.Lookup(name)
	labtest.Must(t, err)
	uid, err := strconv.Atoi(u.Uid)
	labtest.Must(t, err)
	return uid
}

// needReach skips a site whose master works as a user who may not read Salt: below /root, where the virtualenvs are
// unless told otherwise.
func (s site) needReach(t *testing.T) {
	name, ok := s.settings["user"].(string)
	if !ok {
		return
	}
	for _, version := range append([]string{s.version}, s.more...) {
		cmd := exec.CommandContext(t.Context(), filepath.Join(lab.DefaultVenvs(), version, "bin/python"), "-c", "import salt")
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(idOf(t, name))}}
		if err := cmd.Run(); err != nil {
			t.Skipf("%s may not read %s (%v): SALTCLUSTER_CACHE=/var/cache/lab make setup, and then the same for this test",
				name, lab.DefaultVenvs(), err)
		}
	}
}

// Masters as somebody has configured them, a bare one and one behind saltclusterd, answer the same, and leave the same
// files with the same modes and owners. Only on demand: five minutes for each.
func TestSettings(t *testing.T) {
	if os.Getenv("SALTCLUSTER_PARITY") == "" {
		t.Skip("set SALTCLUSTER_PARITY")
	}
	for _, s := range sites() {
		t.Run(s.name, func(t *testing.T) {
			s.needReach(t)
			minions := []string{"3006.28", "3008.3"}
			minionSettings := lab.Settings{"mine_functions": map[string]any{
				"mined": []any{map[string]any{"mine_function": "test.echo"}, "deep", map[string]any{"allow_tgt": "min06*"},
					map[string]any{"allow_tgt_type": "glob"}},
			}}
			bare, cluster := both(t,
				func(t *testing.T) []Observation {
					l := labtest.New(t, lab.Options{})
					b, err := l.NewBare(t.Context(), s.version, minions, nil, minionSettings)
					labtest.Must(t, err)
					s.lay(t, b.Master)
					labtest.Must(t, b.Up(t.Context()))
					o := s.observe(t, NewSubject(b))
					labtest.Must(t, l.Close())
					return o
				},
				func(t *testing.T) []Observation {
					l := labtest.New(t, lab.Options{})
					c, err := l.NewCluster(t.Context(), lab.ClusterSpec{Masters: append([]string{s.version}, s.more...),
						Minions: minions, MinionSettings: minionSettings})
					labtest.Must(t, err)
					for _, n := range c.Nodes {
						s.lay(t, n.Master)
					}
					labtest.Must(t, c.Up(t.Context()))
					if out, err := c.Nodes[0].Daemon.Ctl(t.Context(), "status"); err == nil {
						t.Logf("status:\n%s", out.Output())
					}
					o := s.observe(t, NodeSubject(c, c.Nodes[0]))
					for _, n := range c.Nodes[1:] {
						res, err := n.Master.Run(t.Context(), "python", "-c",
							fmt.Sprintf(treeScript, filepath.Join(n.Master.ConfigDir, "master")))
						labtest.Must(t, err)
						t.Logf("#### tree of %s\n%s%s", n.Name, res.Stdout, res.Stderr)
					}
					labtest.Must(t, l.Close())
					return o
				})
			compare(t, bare, cluster)
		})
	}
}

func (s site) observe(t *testing.T, sub *Subject) []Observation {
	labtest.Must(t, sub.Clean())
	var all []Observation
	var steps []Step
	for _, st := range s.steps {
		st.Argv = append([]string(nil), st.Argv...)
		for i, a := range st.Argv {
			st.Argv[i] = strings.ReplaceAll(a, "{CONF}", sub.Master.ConfigDir)
		}
		steps = append(steps, st)
	}
	for _, st := range append(append(common("min06-1"), steps...), confSteps(sub.Master.ConfigDir)...) {
		o := sub.Observe(t.Context(), st)
		t.Logf("%-45s exit code %d in %.1fs", o.Step, o.Code, o.Took.Seconds())
		all = append(all, o)
	}
	return all
}
