package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

const goodSecret = "Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4"

// write makes files in a fresh directory, 0640, and returns the path of
// "saltclusterd" in it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o640))
	}
	return filepath.Join(dir, "saltclusterd")
}

func loadTest(path string, env map[string]string) (*Config, error) {
	return loadWith(path, func(name string) string { return env[name] },
		func() (string, error) { return "Host1.Example.com", nil })
}

// loadText loads one file that has all that is required, and text.
func loadText(t *testing.T, text string) (*Config, error) {
	t.Helper()
	return loadTest(write(t, map[string]string{
		"saltclusterd": "cluster_id: lab\ncluster_secret: " + goodSecret + "\n" + text,
	}), nil)
}

func TestDefaults(t *testing.T) {
	c, err := loadText(t, "")
	require.NoError(t, err)
	if c.ID != "host1.example.com" || c.Edge.PublishPort != 4505 || c.Cluster.PoolPort != 4520 ||
		c.Paths.AdminSocket != "/run/saltclusterd/admin.sock" || c.Cluster.PKIDir != "/var/lib/saltclusterd/pki" {
		t.Errorf("%+v", c)
	}
}

func TestValues(t *testing.T) {
	c, err := loadText(t, `
id: 1234
interface: 10.0.0.11
publish_port: 14505
cluster_peers: [m2, 'm3:4521', '2001:db8::3', '[2001:db8::4]:4522']
cluster_isolated_filesystem: no
handshake_timeout: 1.5
rotate_window: 1m30s
max_request_size: 16MiB
pub_queue_bytes: 65536
allow_clear_commands: {publish: [10.0.9.0/24, 10.0.8.1], mk_token: '::1'}
master_restart_command: [systemctl, restart, salt-master]
run_dir: /run/x
state_dir: /data
cluster_event_policy: {b/*: all, a/*: leader}
cluster_event_mirror: salt/key
log_level: !!null
agent_check_listen: ':4581'
`)
	require.NoError(t, err)
	want := map[string]any{
		"id": "1234", "interface": []string{"10.0.0.11"}, "publish_port": 14505, "cluster_isolated_filesystem": false,
		"handshake_timeout": 1500 * time.Millisecond, "rotate_window": 90 * time.Second,
		"max_request_size": 16 * MiB, "pub_queue_bytes": 64 * KiB, "log_level": "info",
		"admin_socket": "/run/x/admin.sock", "cluster_pki_dir": "/data/pki", "agent_check_listen": ":4581",
		"cluster_event_policy": []TagRule{{"b/*", "all"}, {"a/*", "leader"}}, "cluster_event_mirror": []string{"salt/key"},
		"master_restart_command": []string{"systemctl", "restart", "salt-master"},
		"allow_clear_commands": map[string][]netip.Prefix{
			"publish":  {netip.MustParsePrefix("10.0.9.0/24"), netip.MustParsePrefix("10.0.8.1/32")},
			"mk_token": {netip.MustParsePrefix("::1/128")},
		},
	}
	for _, o := range Options() {
		if w, ok := want[o.Name]; ok && !reflect.DeepEqual(o.currentValue(c), w) {
			t.Errorf("%s = %v, want %v", o.Name, o.currentValue(c), w)
		}
	}
	peers := []string{"m2:4520", "m3:4521", "[2001:db8::3]:4520", "[2001:db8::4]:4522"}
	check.DeepEqual(t, c.PeerAddresses(), peers, "peers")
}

func TestMistakes(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"unknown", "cluser_peers: []", ":3: cluser_peers: is not an option of saltclusterd (did you mean cluster_peers?)"},
		{"far off", "frobnicate: 1", ":3: frobnicate: is not an option of saltclusterd"},
		{"renamed", "cluster_port: 1", "cluster_port: is called cluster_pool_port"},
		{"native tuning", "cluster_min_voters: 3", "cluster_min_voters: tunes Salt's own consensus"},
		{"the master's", "file_roots: {}", "file_roots: is an option of the salt-master"},
		{"twice", "id: a\nid: b", ":4: id: is given twice, first on line 3"},
		{"list for text", "id: [a]", "id: is a list, but must be text"},
		{"bool for text", "id: yes\nlog_format: true", ":4: log_format: true is not text (write it in quotes"},
		{"text for int", "publish_port: many", `publish_port: "many" is not a whole number`},
		{"float for int", "publish_port: 4505.5", "is not a whole number"},
		{"range", "publish_port: 70000", "publish_port: 70000 is not between 1 and 65535"},
		{"bool", "metrics: perhaps", `metrics: "perhaps" is neither True nor False`},
		{"quoted bool", "metrics: 'true'", "is neither True nor False"},
		{"size", "max_request_size: 10 bananas", "is not a size such as 64MiB"},
		{"small size", "max_request_size: 1", "max_request_size: 1 is not between 64KiB and 1GiB"},
		{"duration", "drain_time: soon", "is not a duration"},
		{"negative duration", "drain_time: -1s", "is not a duration"},
		{"long duration", "drain_time: 1h", "drain_time: 1h is not between 0s and 10m"},
		{"word", "log_level: debgu", `log_level: "debgu" is not one of debug, info, warning, error (did you mean debug?)`},
		{"path", "state_dir: var/lib", `state_dir: "var/lib" is not an absolute path`},
		{"socket", "admin_socket: /" + strings.Repeat("x", 120), "has at most 107 characters"},
		{"wildcard", "interface: 0.0.0.0", "interface: 0.0.0.0 would also claim the loopback address"},
		{"wildcard 6", "interface: ['::']", "interface: :: would also claim"},
		{"name", "interface: m1.example.com", `interface: "m1.example.com" is not an IP address`},
		{"interface twice", "interface: [10.0.0.1, 10.0.0.1]", "10.0.0.1 is given twice"},
		{"ports", "ret_port: 4505", "ret_port: 4505 is already the port of publish_port"},
		{"pool port", "cluster_pool_port: 4506", "cluster_pool_port: 4506 is already the port of ret_port"},
		{"id", "id: M1", "write id: m1"},
		{"dotted id", "id: .hidden", "must begin and end"},
		{"peer", "cluster_peers: ['m2:x']", `"m2:x" is not host or host:port`},
		{"advertise a name", "cluster_advertise: m1.example.com", "is not an address that other hosts can reach"},
		{"advertise a wildcard", "cluster_advertise: 0.0.0.0", "is not an address that other hosts can reach"},
		{"advertise a port", "cluster_advertise: 'x:y'", "is not an IP address, with or without :port"},
		{"empty peer", "cluster_peers: ['']", "has an empty entry"},
		{"fingerprint", "cluster_pub_fingerprint: abc", "is not a SHA-256 fingerprint"},
		{"command", "allow_clear_commands: {publsh: [10.0.0.0/8]}",
			`"publsh" is not an admin command (did you mean publish?)`},
		{"network", "allow_clear_commands: {publish: [ten]}", `"ten" is not a network`},
		{"no map", "allow_clear_commands: publish", "is not a map of commands"},
		{"proxies", "proxy_protocol: True", "proxy_protocol: is on, but no load balancer is trusted with it"},
		{"all proxies", "proxy_protocol: True\nproxy_protocol_trusted: [0.0.0.0/0]", "0.0.0.0/0 is every address"},
		{"TLS without a transport", "cluster_require_tls: True\ncluster_transports: [zeromq]",
			"cluster_require_tls: is True, but cluster_transports has only zeromq"},
		{"health", "health_listen: 4580", `"4580" is not address:port`},
		{"health name", "health_listen: 'here:4580'", `"here" is not an IP address`},
		{"event policy", "cluster_event_policy: {a: everyone}",
			`cluster_event_policy: a: "everyone" is not one of owner, origin, all, leader`},
		{"event policy twice", "cluster_event_policy: [{a: all}, {a: owner}]", ":3: cluster_event_policy: a is given twice"},
		{"no event policy", "cluster_event_policy: all", "is not a map of tags to policies"},
		{"event glob", "cluster_event_policy: {'[z-a]': all}", "is not a glob for tags"},
		{"mirror glob", "cluster_event_mirror: ['']", "has an empty entry"},
		{"not yaml", "id: 'x", "is not valid YAML"},
		{"the minions' and the master's", "tcp_keepalive: True", "tcp_keepalive: is an option of the salt-master"},
		{"the master's of one version", "keys.cache_driver: localfs_key",
			"keys.cache_driver: is an option of the salt-master"},
		{"two documents", "---\n- a", "has a second YAML document"},
		{"endless alias", "interface: &a [*a]", "interface: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadText(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error:\n%v\nshould contain:\n%s", err, tt.want)
			}
		})
	}
}

// The library counts in three ways.
func TestSyntaxErrorsNameTheirLine(t *testing.T) {
	for text, line := range map[string]int{
		"a: b: c\n":                              1,
		"\tid: m1\n":                             1,
		"%s\n":                                   1,
		"log_level: info\n\na: b: c\nid: x\n":    3,
		"log_level: info\n\n\tx: y\nid: x\n":     3,
		"# c\nid: x\nlog_level: info\n\tx: y\n":  4,
		"id: x\nlog_level: info\n@x: y\n":        3,
		"id: x\n\ncluster_peers:\n  - a\n - b\n": 5,
		"# c\nlog_level: \"info\nx: y\n":         2,
		"id: [a\n":                               1,
		"# c\n\ndrain_time: 1m\nid: [a\n\nb: c":  4,
		"id: {a: b\n":                            1,
		"id: x\n  log_level: info\n":             2,
		"- a\nb: c\n":                            2,
		"# c\n\nid: x\n log_level: info\ny: z\n": 4,
		"# c\n---\nid: x\n\n  a\nb\nc: d\n":      6,
		"id: !x!y z\n":                           1,
	} {
		path := write(t, map[string]string{"saltclusterd": text})
		_, err := loadTest(path, nil)
		if want := fmt.Sprintf("%s:%d: is not valid YAML", path, line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got\n%v\nwant %s", text, err, want)
		}
	}
}

func TestLinkThatLeadsNowhere(t *testing.T) {
	path := write(t, map[string]string{"saltclusterd": "cluster_id: lab\n", "saltclusterd.d/a.conf": ""})
	link := filepath.Join(DropInDir(path), "b.conf")
	require.NoError(t, os.Symlink("/nonexistent/b.conf", link))
	_, err := loadTest(path, nil)
	if want := link + ": is a link to /nonexistent/b.conf, which does not exist"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestDropInsReplaceInOrder(t *testing.T) {
	path := write(t, map[string]string{
		"saltclusterd":                 "cluster_id: lab\nlog_level: info\ninterface: [10.0.0.1, 10.0.0.2]\n",
		"saltclusterd.d/20-b.conf":     "log_level: error\n",
		"saltclusterd.d/10-a.conf":     "log_level: debug\ncluster_secret: " + goodSecret + "\ninterface: 10.0.0.3\n",
		"saltclusterd.d/30-empty.conf": "# nothing\n",
		"saltclusterd.d/.40.conf.swp":  "garbage: [",
		"saltclusterd.d/50.conf.bak":   "garbage: [",
	})
	c, err := loadTest(path, nil)
	require.NoError(t, err)
	if c.Log.Level != "error" || !reflect.DeepEqual(c.Edge.Interface, []string{"10.0.0.3"}) || len(c.Files()) != 4 {
		t.Errorf("level %s interface %v files %v", c.Log.Level, c.Edge.Interface, c.Files())
	}
	for _, o := range c.Show().Options {
		if o.Name == "log_level" && !strings.HasSuffix(o.Source, "20-b.conf:1") {
			t.Errorf("source %s", o.Source)
		}
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	path := write(t, map[string]string{
		"saltclusterd":          "cluster_id: 'a b'\nnope: 1\n",
		"saltclusterd.d/x.conf": "ret_port: x\n",
	})
	_, err := loadTest(path, nil)
	findings, ok := errors.AsType[Findings](err)
	if !ok || len(findings) != 4 { // nope, ret_port, cluster_id, cluster_secret
		t.Errorf("%v", err)
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	if _, err := loadTest(filepath.Join(t.TempDir(), "none"), nil); err == nil ||
		!strings.Contains(err.Error(), "does not exist") {
		t.Errorf("missing: %v", err)
	}
	dir := t.TempDir()
	if _, err := loadTest(dir, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("directory: %v", err)
	}
	big := write(t, map[string]string{"saltclusterd": strings.Repeat("#", maxFile+1)})
	if _, err := loadTest(big, nil); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("big: %v", err)
	}
	open := write(t, map[string]string{"saltclusterd": "cluster_id: lab\n"})
	require.NoError(t, os.Chmod(open, 0o666))
	if _, err := loadTest(open, nil); err == nil || !strings.Contains(err.Error(), "may be written by everyone") {
		t.Errorf("writable: %v", err)
	}
}

// Read alone, without validation, finds the admin socket.
func TestRead_AdminSocket(t *testing.T) {
	c, err := Read(write(t, map[string]string{"saltclusterd": "run_dir: /run/other\n"}))
	if err != nil || c.Paths.AdminSocket != "/run/other/admin.sock" {
		t.Errorf("%v, %v", c.Paths, err)
	}
	if c, _ := Read("/nonexistent/saltclusterd"); c.Paths.AdminSocket != "/run/saltclusterd/admin.sock" {
		t.Errorf("%v", c.Paths)
	}
}

func TestDropInDir(t *testing.T) {
	for path, want := range map[string]string{
		"/etc/salt/saltclusterd":      "/etc/salt/saltclusterd.d",
		"/etc/salt/saltclusterd.conf": "/etc/salt/saltclusterd.d",
		"/tmp/m1.yaml":                "/tmp/m1.d",
	} {
		check.Equal(t, DropInDir(path), want, path, "->")
	}
}
