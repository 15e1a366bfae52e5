package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/require"
)

const example = "../../packaging/kubernetes/saltclusterd.yaml"

type object map[string]any

// at returns what stands at a path of keys; nil when nothing does.
func (o object) at(keys ...string) any {
	var v any = map[string]any(o)
	for _, k := range keys {
		m, _ := v.(map[string]any)
		v = m[k]
	}
	return v
}

func (o object) list(keys ...string) (all []object) {
	list, _ := o.at(keys...).([]any)
	for _, v := range list {
		m, _ := v.(map[string]any)
		all = append(all, m)
	}
	return all
}

func (o object) text(keys ...string) string {
	s, _ := o.at(keys...).(string)
	return s
}

// objects are those of the example, by kind and name.
func objects(t *testing.T) map[string]object {
	t.Helper()
	raw, err := os.ReadFile(example)
	require.NoError(t, err)
	all := map[string]object{}
	for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
		o := map[string]any{}
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[object(o).text("kind")+"/"+object(o).text("metadata", "name")] = o
	}
	return all
}

// containers of the pod, also those that come first.
func containers(set object) []object {
	return append(set.list("spec", "template", "spec", "initContainers"),
		set.list("spec", "template", "spec", "containers")...)
}

func named(t *testing.T, list []object, name string) object {
	t.Helper()
	i := slices.IndexFunc(list, func(o object) bool { return o.text("name") == name })
	if i < 0 {
		t.Fatalf("there is no %s", name)
	}
	return list[i]
}

// What is in the ConfigMap, with what bin/prepare adds, is a configuration of saltclusterd's.
func TestItsConfigurationIsValid(t *testing.T) {
	data := objects(t)["ConfigMap/salt"]
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	put := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	put(secret, "0123456789abcdefghijklmnopqrstuv\n")
	text := strings.Replace(data.text("data", "saltclusterd"), "/run/secrets/saltclusterd/cluster_secret", secret, 1)
	main := filepath.Join(dir, "saltclusterd")
	put(main, text)
	put(main+".d/pod.conf", pod(t, "saltclusterd.d/pod.conf"))
	cfg, err := config.Load(main)
	require.NoError(t, err)
	if cfg.ID != "salt-0" || len(cfg.PeerAddresses()) != 3 ||
		cfg.Salt.MasterCommand != "/usr/lib/saltclusterd/bin/salt-version" {
		t.Errorf("id %s, peers %v, %s", cfg.ID, cfg.PeerAddresses(), cfg.Salt.MasterCommand)
	}
	var master map[string]any
	if err := yaml.Unmarshal([]byte(data.text("data", "master")), &master); err != nil || master["user"] != "salt" {
		t.Errorf("the salt-master's: %v, %v", master, err)
	}
}

// pod is a file that bin/prepare writes, for the first pod.
func pod(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../../packaging/container/bin/prepare")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(raw), "cat >/etc/salt/"+name+" <<END\n")
	text, _, whole := strings.Cut(text, "END\n")
	if !found || !whole {
		t.Fatalf("prepare does not write %s", name)
	}
	return strings.NewReplacer("$NODE", "salt-0", "$ADDRESS", "10.0.0.11").Replace(text)
}

// Services, the budget and the set mean the same pods, and the ports that saltclusterd has unless it is told otherwise.
func TestObjects_Consistent(t *testing.T) {
	all := objects(t)
	set := all["StatefulSet/salt"]
	pods := set.at("spec", "template", "metadata", "labels").(map[string]any)
	for name, keys := range map[string][]string{
		"StatefulSet/salt":         {"spec", "selector", "matchLabels"},
		"PodDisruptionBudget/salt": {"spec", "selector", "matchLabels"},
		"Service/salt":             {"spec", "selector"}, "Service/salt-peers": {"spec", "selector"},
	} {
		if selector, _ := all[name].at(keys...).(map[string]any); !maps.Equal(selector, pods) {
			t.Errorf("%s selects %v, the pods are %v", name, selector, pods)
		}
	}
	peers := all["Service/"+set.text("spec", "serviceName")]
	if peers.text("spec", "clusterIP") != "None" || peers.at("spec", "publishNotReadyAddresses") != true {
		t.Error("the service of the set is not headless, or hides pods that are not ready")
	}

	def, _ := config.Read("") // its findings are about what a node must be told
	want := map[string]any{
		"publish": def.Edge.PublishPort, "request": def.Edge.RetPort, "peer": def.Cluster.PoolPort,
		"gossip": def.Cluster.PoolPort, "health": 4580,
	}
	if _, port, _ := strings.Cut(def.Health.Listen, ":"); port != "4580" {
		t.Errorf("health_listen is %s", def.Health.Listen)
	}
	daemon := named(t, containers(set), "saltclusterd")
	for _, p := range daemon.list("ports") {
		if p.at("containerPort") != want[p.text("name")] {
			t.Errorf("port %s is %v, not %v", p.text("name"), p.at("containerPort"), want[p.text("name")])
		}
	}
	for _, name := range []string{"Service/salt", "Service/salt-peers"} {
		for _, p := range all[name].list("spec", "ports") {
			to := p.at("targetPort") // a number: not every Kubernetes knows the names of a sidecar's ports
			if p.at("port") != want[p.text("name")] || to != nil && to != p.at("port") {
				t.Errorf("%s: port %s is %v, to %v", name, p.text("name"), p.at("port"), to)
			}
		}
	}
	for probe, path := range map[string]string{"startupProbe": "/livez", "livenessProbe": "/livez",
		"readinessProbe": "/req"} {
		if got := daemon.text(probe, "httpGet", "path"); got != path {
			t.Errorf("%s asks %q", probe, got)
		}
	}
}

// Whatever is mounted is a volume, all containers are closed, and a pod has the time to stop that its parts take.
func TestItsPods(t *testing.T) {
	set := objects(t)["StatefulSet/salt"]
	volumes := map[string]bool{}
	for _, v := range set.list("spec", "template", "spec", "volumes") {
		volumes[v.text("name")] = true
	}
	for _, v := range set.list("spec", "volumeClaimTemplates") {
		volumes[v.text("metadata", "name")] = true
	}
	for _, c := range containers(set) {
		seen := []string{}
		for _, m := range c.list("volumeMounts") {
			path := m.text("mountPath")
			if !volumes[m.text("name")] {
				t.Errorf("%s mounts %s, which is no volume", c.text("name"), m.text("name"))
			}
			if i := slices.IndexFunc(seen, func(s string) bool { return strings.HasPrefix(s, path+"/") }); i >= 0 {
				t.Errorf("%s mounts %s over %s", c.text("name"), path, seen[i])
			}
			seen = append(seen, path)
		}
		if c.at("securityContext", "readOnlyRootFilesystem") != true ||
			c.at("securityContext", "allowPrivilegeEscalation") != false {
			t.Errorf("%s is not closed", c.text("name"))
		}
	}
	if named(t, set.list("spec", "template", "spec", "initContainers"), "saltclusterd").text("restartPolicy") != "Always" {
		t.Error("saltclusterd does not outlive the salt-master")
	}
	stop := named(t, containers(set), "salt-master").at("lifecycle", "preStop", "exec", "command").([]any)
	drain, err := time.ParseDuration(stop[len(stop)-1].(string))
	require.NoError(t, err)
	def, _ := config.Read("")
	needs := drain + def.Edge.DrainAnnounce + def.Edge.DrainTime + 30*time.Second // and the salt-master's own
	if has := time.Duration(set.at("spec", "template", "spec",
		"terminationGracePeriodSeconds").(int)) * time.Second; has < needs {
		t.Errorf("it has %s to stop, and needs %s", has, needs)
	}
}
