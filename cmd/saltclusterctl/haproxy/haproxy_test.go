package haproxy

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

func facts() Facts {
	return Facts{
		Cluster: "salt-lab", Servers: []Server{{"m1", "10.0.0.11"}, {"m2", "10.0.0.12"}, {"m3", "2001:db8::13"}},
		PublishPort: 4505, RetPort: 4506, HealthPort: 4580, Heartbeat: 10 * time.Second, ForwardTimeout: time.Minute,
	}
}

// variants are the configurations an operator can ask for.
func variants() map[string]func() (Facts, Options) {
	return map[string]func() (Facts, Options){
		"plain": func() (Facts, Options) { return facts(), Options{} },
		"agent": func() (Facts, Options) {
			f := facts()
			f.AgentPort, f.ProxyProtocol, f.Minions = 4581, true, 40_000
			return f, Options{Bind: []string{"127.0.0.1", "::1"}, StatsSocket: "/tmp/haproxy-stats.sock"}
		},
		"api":       func() (Facts, Options) { return facts(), Options{Bind: []string{"10.0.0.5"}, API: 8000} },
		"fragment":  func() (Facts, Options) { return facts(), Options{Fragment: true} },
		"no_health": func() (Facts, Options) { f := facts(); f.HealthPort = 0; return f, Options{} },
		"one_port":  func() (Facts, Options) { return facts(), Options{NoRequest: true, Idle: 30500 * time.Millisecond} },
	}
}

func TestWrite(t *testing.T) {
	for name, variant := range variants() {
		f, o := variant()
		got, err := Write(f, o)
		require.NoError(t, err)
		path := filepath.Join("testdata", name+".cfg")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		if got != string(want) {
			t.Errorf("%s differs from %s (-update rewrites it):\n%s", name, path, got)
		}
	}
}

// TestWrite_PassesJudge lets Judge look at what Write makes.
func TestWrite_PassesJudge(t *testing.T) {
	for name, variant := range variants() {
		f, o := variant()
		text, err := Write(f, o)
		require.NoError(t, err)
		c, err := Parse(text)
		require.NoError(t, err)
		for _, found := range Judge(c, f) {
			if !o.NoRequest || found.Line != 0 {
				t.Errorf("%s: %+v", name, found)
			}
		}
	}
}

// TestHAProxyTakesIt asks the real one.
func TestHAProxyTakesIt(t *testing.T) {
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin")
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("haproxy is not installed")
	}
	for name, variant := range variants() {
		f, o := variant()
		text, err := Write(f, o)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "haproxy.cfg")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if out, err := exec.Command(bin, "-c", "-f", path).CombinedOutput(); err != nil ||
			strings.Contains(string(out), "WARNING") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestClassicMistakes: each is a change of a good configuration, and what is said of it.
func TestClassicMistakes(t *testing.T) {
	good, err := Write(facts(), Options{})
	require.NoError(t, err)
	tests := []struct {
		name, old, new string
		change         func(*Facts)
		want           string // of What; empty: nothing is wrong
	}{
		{"good", "", "", nil, ""},
		{"mode http", "mode tcp", "mode http", nil, "mode http"},
		{"silence", "timeout tunnel 24h", "timeout tunnel 10s", nil, "cut after 10s of silence"},
		{"Debian's 50 s, long heartbeat", "timeout tunnel 24h", "timeout tunnel 50000",
			func(f *Facts) { f.Heartbeat = time.Minute }, "cut after 50s of silence"},
		{"one late PING", "timeout tunnel 24h", "timeout tunnel 20s", nil, "cut after 20s"},
		{"Debian's 50 s", "timeout tunnel 24h", "timeout tunnel 50000", nil, ""},
		{"slow pillar", "timeout tunnel 1h", "timeout tunnel 50000", nil, "4506 are cut after 50s"},
		{"slow to connect", "timeout connect 5s", "timeout connect 1m", nil, "timeout connect is 1m"},
		{"no httpchk", "option httpchk GET /pub\n", "\n", nil, "only checks whether port 4505 is open"},
		{"/", "httpchk GET /pub", "httpchk", nil, "checks /, which no node serves"},
		{"/readyz", "httpchk GET /pub", "httpchk GET /readyz", nil, "checks /readyz"},
		{"/livez", "httpchk GET /req", "httpchk GET /livez", nil, "checks /livez"},
		{"the other", "httpchk GET /req", "httpchk GET /pub", nil, "checks /pub, which is for the other port"},
		{"http-check send", "option httpchk GET /pub", "option httpchk\n http-check send meth GET uri /pub", nil, ""},
		{"no 404", "http-check disable-on-404", "", nil, "lacks http-check disable-on-404"},
		{"check of the wrong port", "check port 4580", "check", nil, "checked over HTTP on its port 4505"},
		{"unchecked", "check port 4580 ", "", nil, "is not checked"},
		{"default-server", "listen salt-publish",
			"listen salt-publish\n default-server check port 4580 on-marked-down shutdown-sessions", nil, ""},
		{"stays attached", " on-marked-down shutdown-sessions", "", nil, "lacks on-marked-down"},
		{"ports crossed", "10.0.0.11:4505", "10.0.0.11:4506", nil, "on its port 4506"},
		{"a stranger", "server m2 10.0.0.12", "server m9 10.0.0.99", nil, "m9 (10.0.0.99) is not a member"},
		{"a member is missing", "server m2 10.0.0.12", "# server m2 10.0.0.12", nil, "lacks the member m2"},
		{"by name, not by address", "server m2 10.0.0.12", "server m2 salt2.example.com", nil, ""},
		{"balance source", "balance leastconn", "balance source", nil, "keeps each address on one node"},
		{"unexpected header", "slowstart 30s", "send-proxy-v2", nil, "but the nodes do not expect it"},
		{"missing header", "", "", func(f *Facts) { f.ProxyProtocol = true }, "but the nodes require it"},
		{"few connections", "maxconn 21000", "maxconn 2000", func(f *Facts) { f.Minions = 5000 },
			"maxconn of global is 2000"},
		{"few in the section", "maxconn 10500", "maxconn 4096", func(f *Facts) { f.Minions = 5000 },
			"maxconn of listen salt-publish is 4096"},
		{"agent without weight", "weight 100", "agent-check agent-port 4581", nil, "agent-check, and weight 1"},
		{"TLS", "bind :4505", "bind :4505 ssl crt /x.pem", nil, "terminates TLS"},
		{"one port only", "bind :4506", "bind :4507", nil, "no section forwards port 4506"},
		{"ports, a node away", "maxconn", "# maxconn", func(f *Facts) { f.Minions = 56_465 },
			"with one of 3 servers away that is 28233 connections to each"},
		{"ports, all there", "maxconn", "# maxconn", func(f *Facts) { f.Minions = 90_000 },
			"with 3 servers that is 30000 connections to each"},
		{"ports enough", "maxconn", "# maxconn", func(f *Facts) { f.Minions = 56_464 }, ""},
		{"more ports", "maxconn", "# maxconn", func(f *Facts) { f.Minions, f.LocalPorts = 100_000, 55_296 }, ""},
		{"ports of a source", "maxconn", "source 10.0.0.5:1024-65000 #", func(f *Facts) { f.Minions = 90_000 }, ""},
		{"open files", "", "", func(f *Facts) { f.OpenFiles = 42_000 },
			"maxconn 21000 of global needs 42016 open files, and what HAProxy may have on this host is 42000"},
		{"open files enough", "", "", func(f *Facts) { f.OpenFiles = 42_016 }, ""},
		{"ulimit-n", "maxconn 21000", "maxconn 21000\n ulimit-n 8192", nil, "and ulimit-n is 8192"},
		{"fd-hard-limit", "maxconn 21000", "maxconn 21000\n fd-hard-limit 8192", nil, "and fd-hard-limit is 8192"},
		{"what there is", "maxconn 21000", "ulimit-n 8192", func(f *Facts) { f.OpenFiles = 1024 }, ""},
		{"for ever", "timeout client 1m", "", nil, "has no timeout client"},
	}
	for _, tt := range tests {
		text := good
		if tt.old != "" {
			if !strings.Contains(good, tt.old) {
				t.Errorf("%s: the good one has no %q", tt.name, tt.old)
			}
			text = strings.ReplaceAll(good, tt.old, tt.new)
		}
		f := facts()
		if tt.change != nil {
			tt.change(&f)
		}
		c, err := Parse(text)
		require.NoError(t, err)
		found := Judge(c, f)
		said := make([]string, 0, len(found))
		for _, one := range found {
			said = append(said, one.What)
			if one.Why == "" || one.Next == "" {
				t.Errorf("%s: %q says no more", tt.name, one.What)
			}
		}
		all := strings.Join(said, "\n")
		if tt.want == "" && all != "" || !strings.Contains(all, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, all, tt.want)
		}
	}
}

// TestFrontendsAndDefaults reads what people write in other ways.
func TestFrontendsAndDefaults(t *testing.T) {
	c, err := Parse(`
global
	maxconn 9000 # many
defaults
	mode http
	timeout client 50000
	timeout server 50s
	timeout connect 5000
	default-server check inter 2s
defaults salt
	mode tcp
	timeout client 1h
	timeout connect 1s
	timeout server 1h
frontend pub from salt
	bind "*:4505",'[::]:4505'
	default_backend masters
backend masters from salt
	server a\ b 10.0.0.1:4505 port 4580
listen web
	bind :80
	server w 10.0.0.9:80
peers p
	server x 1.2.3.4:1
`)
	require.NoError(t, err)
	if c.MaxConn != 9000 || len(c.Proxies) != 3 {
		t.Fatalf("%+v", c)
	}
	routes := c.findRoutes(facts().publishSide())
	if len(routes) != 1 || routes[0].front.Mode != "tcp" || len(routes[0].front.Binds) != 2 ||
		routes[0].back.Servers[0].Name != "a b" {
		t.Fatalf("%+v", routes)
	}
	if idle, _, ok := routes[0].idleTime(); !ok || idle != time.Hour {
		t.Errorf("idle %s", idle)
	}
	web := c.Proxies[2]
	if web.Mode != "tcp" && web.Mode != "http" || !web.Servers[0].Check && web.Mode == "http" {
		t.Errorf("%+v", web)
	}
}

func TestParseIsBounded(t *testing.T) {
	if _, err := Parse(strings.Repeat("#", MaxFile+1)); err == nil {
		t.Error("a huge file was read")
	}
}

func FuzzParse(f *testing.F) {
	for _, variant := range variants() {
		facts, options := variant()
		text, err := Write(facts, options)
		require.NoError(f, err)
		f.Add(text)
	}
	f.Add("listen\nserver\ndefault-server port\nbind 'a\\\nlisten x from\ntimeout client 99999999999d\nfrontend y\nbind :4505\nuse_backend x\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		fs := facts()
		fs.Minions = 10
		Judge(c, fs)
	})
}
