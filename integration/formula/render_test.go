package formula

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/cmd/saltclusterctl/haproxy"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

const top = "../../packaging/formula/"

// python of each of Salt's virtualenvs; none are there before make setup.
func python(t *testing.T) []string {
	t.Helper()
	dir := os.Getenv("SALTCLUSTER_VENVS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip(err)
		}
		dir = filepath.Join(cache, "saltclusterd", "venvs")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*/bin/python"))
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("no virtualenv with Salt: make setup")
	}
	return found
}

type page struct {
	Name    string         `json:"-"`
	Source  string         `json:"source"`
	Context map[string]any `json:"context"`
	Want    string         `json:"-"`
}

// As Salt renders them, with its Jinja.
const renderScript = `
import json, sys, jinja2
env = jinja2.Environment(keep_trailing_newline=True, undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do"])
json.dump([env.from_string(p["source"]).render(**p["context"]) for p in json.load(sys.stdin)], sys.stdout)
`

// compare renders the pages with the Jinja of each Salt.
func compare(t *testing.T, pages []page) {
	t.Helper()
	in, err := json.Marshal(pages)
	require.NoError(t, err)
	for _, bin := range python(t) {
		cmd := exec.Command(bin, "-c", renderScript)
		cmd.Stdin = bytes.NewReader(in)
		var errs strings.Builder
		cmd.Stderr = &errs
		raw, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", bin, err, errs.String())
		}
		var out []string
		require.NoError(t, json.Unmarshal(raw, &out))
		for i, p := range pages {
			if out[i] != p.Want {
				got, want := firstDifference(out[i], p.Want)
				t.Errorf("%s, %s: %q, not %q", bin, p.Name, got, want)
			}
		}
	}
}

func firstDifference(a, b string) (string, string) {
	as, bs := strings.SplitAfter(a, "\n"), strings.SplitAfter(b, "\n")
	for i := 0; i < len(as) && i < len(bs); i++ {
		if as[i] != bs[i] {
			return as[i], bs[i]
		}
	}
	return strings.Join(as[min(len(as), len(bs)):], ""), strings.Join(bs[min(len(as), len(bs)):], "")
}

func source(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(top, "saltclusterd", name))
	require.NoError(t, err)
	return string(raw)
}

// The drop-in is what saltclusterctl setup writes, to the byte: so neither changes the other's, and setup knows it as
// its own.
func TestDropIn_SameAsSetup(t *testing.T) {
	text := source(t, "files/zz-saltclusterd.conf.jinja")
	var pages []page
	for _, major := range []int{3006, 3007, 3008} {
		for name, o := range map[string]localmaster.DropInOptions{
			"plain": {MasterID: "m1"},
			"runners": {MasterID: "it's #1", RunnerDirs: []string{"/srv/runners", "/usr/share/saltclusterd/runners"},
				WheelDirs: []string{"/srv/wheel"}},
			"own driver": {MasterID: "m1", Interface: "127.0.0.2", KeyDriver: "mmap_key"},
			"v6":         {MasterID: "m1", Interface: "::1", KeyDriver: "localfs_key"},
		} {
			o.Version = localmaster.Version{Major: major}
			want, err := localmaster.DropIn(o)
			require.NoError(t, err)
			if o.Interface == "" {
				o.Interface = "127.0.0.1"
			}
			pages = append(pages, page{name, text, map[string]any{
				"interface": o.Interface, "master_id": o.MasterID, "major": major, "key_driver": o.KeyDriver,
				"runner_dirs": o.RunnerDirs,
				"wheel_dirs":  o.WheelDirs,
			}, string(want)})
		}
	}
	compare(t, pages)
}

// So is what load balancers get, of saltclusterctl haproxy.
func TestHAProxy_SameAsVerb(t *testing.T) {
	text := source(t, "files/haproxy.cfg.jinja")
	var pages []page
	for name, c := range map[string]struct {
		facts   haproxy.Facts
		options haproxy.Options
	}{
		"plain": {haproxy.Facts{HealthPort: 4580}, haproxy.Options{}},
		"agent": {haproxy.Facts{HealthPort: 4580, AgentPort: 4581, Minions: 200},
			haproxy.Options{Bind: []string{"10.0.0.5", "2001:db8::5"}}},
		"proxied": {haproxy.Facts{}, haproxy.Options{PublishProxy: "send-proxy-v2", RequestProxy: "send-proxy-v2"}},
	} {
		f, o := c.facts, c.options
		f.Cluster, f.PublishPort, f.RetPort, f.Heartbeat = "production", 4505, 4506, 10*time.Second
		f.Servers = []haproxy.Server{{Name: "m1", Address: "10.0.0.11"}, {Name: "m3", Address: "2001:db8::13"}}
		want, err := haproxy.Write(f, o)
		require.NoError(t, err)
		if f.Minions == 0 {
			f.Minions = 5000
		}
		pages = append(pages, page{name, text, map[string]any{
			"cluster": f.Cluster, "publish_port": f.PublishPort, "ret_port": f.RetPort, "heartbeat": "10s",
			"health_port": f.HealthPort,
			"agent_port":  f.AgentPort, "send_proxy": o.PublishProxy, "minions": f.Minions, "bind": append([]string{}, o.Bind...),
			"servers": [][]string{{"m1", "10.0.0.11"}, {"m3", "2001:db8::13"}},
		}, want})
	}
	compare(t, pages)
}

// pillar.example shows every default as it is, but for what it names as an example.
func TestExampleShowsTheDefaults(t *testing.T) {
	var defaults map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(source(t, "defaults.yaml")), &defaults))
	raw, err := os.ReadFile(top + "pillar.example")
	require.NoError(t, err)
	var example struct{ Saltclusterd map[string]any }
	require.NoError(t, yaml.Unmarshal(raw, &example))
	for _, own := range []string{"nodes", "first", "config", "join_token"} { // join_token is what orchestrations give
		delete(defaults, own)
		delete(example.Saltclusterd, own)
	}
	want, _ := yaml.Marshal(defaults)
	got, _ := yaml.Marshal(example.Saltclusterd)
	if string(want) != string(got) {
		t.Errorf("pillar.example says\n%s, defaults.yaml\n%s", got, want)
	}
}

// render makes the data of states as Salt does, of the newest version there is.
func render(t *testing.T, minion string, pillar map[string]any, sls ...string) []map[string]any {
	t.Helper()
	found := python(t)
	in, err := json.Marshal(map[string]any{
		"root": top, "sls": sls, "pillar": pillar, "grains": map[string]any{"id": minion, "saltversioninfo": []int{3006, 28}},
		"commands": map[string]string{
			"saltclusterctl status": `{"node": {"id": "m1"}}`, "saltclusterctl members": `{"members": [{"id": "m1"}]}`,
			"saltclusterctl token create": `{"text": "T0KEN"}`, "salt-master --version": "salt-master 3008.3 (Argon)",
		},
	})
	require.NoError(t, err)
	cmd := exec.Command(found[len(found)-1], "states.py")
	cmd.Stdin = bytes.NewReader(in)
	var errs strings.Builder
	cmd.Stderr = &errs
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	var out []map[string]any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

// arguments of a state, as one map.
func arguments(state any) map[string]any {
	all := map[string]any{}
	for fun, list := range state.(map[string]any) {
		all["fun"] = fun
		for _, a := range list.([]any) {
			for name, v := range a.(map[string]any) {
				all[name] = v
			}
		}
	}
	return all
}

var threeNodes = map[string]any{
	"first": "m1", "config": map[string]any{"cluster_id": "site"},
	"nodes": map[string]any{
		"m1": map[string]any{"minion": "salt1", "address": "10.0.0.11"},
		"m2": map[string]any{"minion": "salt2", "address": "10.0.0.12"},
		"w1": map[string]any{"address": "10.0.0.13", "config": map[string]any{"cluster_witness": true}},
	},
}

// An orchestration is one chain: each step requires the one before it, so that no two hosts are worked on at a time,
// and nothing goes on after a failure.
func TestOrchestration_OneHostAtATime(t *testing.T) {
	names := []string{"deploy", "join", "restart", "upgrade"}
	var sls []string
	for _, n := range names {
		sls = append(sls, "saltclusterd/orch/"+n+".sls")
	}
	want := map[string]string{ // the host that it is run on is m1
		"deploy": "deploy-m2 deploy-w1", "join": "join-m2 join-m2-ready", "restart": "restart-m2 restart-m2-ready",
		"upgrade": "upgrade-m1-first upgrade-m1-install upgrade-m1-ready upgrade-m2-drain upgrade-m2-install upgrade-m2-undrain upgrade-m2-ready " +
			"upgrade-w1-install upgrade-w1-ready",
	}
	out := render(t, "m1_master", map[string]any{"saltclusterd": threeNodes, "saltclusterd_node": "m2"}, sls...)
	for i, states := range out {
		after := map[string]string{} // by what it requires
		for id, state := range states {
			args := arguments(state)
			before := ""
			if r, ok := args["require"].([]any); ok && len(r) == 1 {
				before = r[0].(string)
			}
			if after[before] != "" {
				t.Errorf("%s: %s and %s both follow %q", names[i], id, after[before], before)
			}
			if after[before] = id; args["failhard"] != true {
				t.Errorf("%s: after a failure of %s it goes on", names[i], id)
			}
		}
		var chain []string
		for id := after[""]; id != ""; id = after[id] {
			chain = append(chain, strings.TrimPrefix(id, "saltclusterd-"))
		}
		if got := strings.Join(chain, " "); got != want[names[i]] || len(chain) != len(states) {
			t.Errorf("%s is %s", names[i], got)
		}
	}
	join := arguments(out[1]["saltclusterd-join-m2"])
	if text, _ := json.Marshal(join["pillar"]); string(text) != `{"saltclusterd":{"join_token":"T0KEN","master":{"restart":true}}}` {
		t.Errorf("whoever joins is told %s", text)
	}
}

// No secret is in what is compiled of the states, whose data are shown and kept; a witness has no salt-master to be
// moved.
func TestStates(t *testing.T) {
	const secret = "0123456789abcdefghijklmnopqrstuv"
	parts := []string{"install", "config", "service", "member", "master", "haproxy", "clean", "ready", "drain", "undrain",
		"init"}
	var sls []string
	for _, p := range parts {
		sls = append(sls, "saltclusterd/"+p+".sls")
	}
	pillar := map[string]any{"join_token": secret, "secret": secret}
	for k, v := range threeNodes {
		pillar[k] = v
	}
	for minion, moved := range map[string]bool{"salt2": true, "w1": false} {
		out := render(t, minion, map[string]any{"saltclusterd": pillar}, sls...)
		if text, _ := json.Marshal(out); strings.Contains(string(text), secret) {
			t.Errorf("%s: the secret is in the states", minion)
		}
		if _, there := out[1]["saltclusterd-config-dropin"]; there != moved {
			t.Errorf("%s: the drop-in is there: %t", minion, there)
		}
		for _, name := range []string{"secret", "token"} {
			if a := arguments(out[1]["saltclusterd-config-"+name]); a["mode"] != "0600" || a["show_changes"] != false ||
				a["contents"] != nil {
				t.Errorf("%s: %v", name, a)
			}
		}
	}
	if out := render(t, "stranger", map[string]any{"saltclusterd": pillar},
		"saltclusterd/config.sls"); out[0]["saltclusterd-config-node"] == nil {
		t.Error("a minion that is no member is configured")
	}
}
