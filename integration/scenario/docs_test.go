//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/guides"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
)

// What the guides mark as runnable is typed as it stands, from the first look at a master at work to the node that
// leaves.
func TestDocs(t *testing.T) {
	t.Parallel()
	pages, err := guides.Read(lab.ModuleRoot())
	labtest.Must(t, err)
	var blocks []guides.Runnable
	for _, stage := range []string{guides.Site, guides.End} {
		for _, p := range pages {
			all, err := p.Runnables()
			labtest.Must(t, err)
			for _, b := range all {
				if b.Stage == stage {
					blocks = append(blocks, b)
				}
			}
		}
	}
	s := newDocsSite(t)
	for _, b := range blocks {
		ok := t.Run(b.Name(), func(t *testing.T) { s.try(t, b) })
		if !ok && b.Page == "docs/tutorial/quickstart.md" { // what follows needs it
			t.FailNow()
		}
	}
	t.Run("traces", func(t *testing.T) { s.traces.told(t) })
}

// docsSite is what the guides are about: a salt-master on m1 with the minions web1 and web2, fresh ones on m2 and m3,
// HAProxy on lb.
type docsSite struct {
	lab    *lab.Lab
	nodes  map[string]*lab.Node
	lb     *lab.HAProxy
	tokens map[string]string // by the node that they are for
	traces *spans
	tools  string // the directory with what hosts of a lab have not: systemctl, scp
	socket string // where systemctl asks
}

func newDocsSite(t *testing.T) *docsSite {
	ctx, l := t.Context(), labtest.New(t, lab.Options{})
	if !l.Namespaces() {
		t.Skip("needs root: masters on all addresses of hosts of their own")
	}
	s := &docsSite{lab: l, nodes: map[string]*lab.Node{}, tokens: map[string]string{}, traces: &spans{nodes: map[string]map[string]bool{}},
		tools: filepath.Join(l.Dir(), "tools"), socket: filepath.Join(l.Dir(), "systemctl.sock")}
	var hosts []*lab.Host
	for i, version := range []string{lab.Versions[1], lab.Versions[0], lab.Versions[2]} {
		h, err := l.Host(ctx, fmt.Sprint("m", i+1))
		labtest.Must(t, err)
		settings := lab.Settings{"interface": "0.0.0.0", "timeout": 5, "gather_job_timeout": 15}
		for name, value := range presenceSettings(t) { // where packages have the runners
			if strings.HasSuffix(name, "_dirs") {
				settings[name] = value
			}
		}
		m, err := h.NewMaster(version, h.Addr, settings)
		labtest.Must(t, err)
		n := &lab.Node{Host: h, Master: m, Daemon: m.NewSetup()}
		s.nodes[h.Name], hosts = n, append(hosts, h)
		dir := filepath.Join(m.ConfigDir, "saltclusterd.d")
		labtest.Must(t, os.MkdirAll(dir, 0o750))
		conf := "drain_announce: 1s\ndrain_time: 2s\ntrace_endpoint: http://127.0.0.1:4318/v1/traces\ntrace_one_in: 1\n"
		labtest.Must(t, os.WriteFile(filepath.Join(dir, "lab.conf"), []byte(conf), 0o644))
		s.traces.collect(t, h)
		labtest.Must(t, m.Start(ctx))
	}
	lb, err := l.Host(ctx, "lb")
	labtest.Must(t, err)
	s.lb, err = lb.NewHAProxy(lab.LBOptions{}, hosts...)
	labtest.Must(t, err)
	labtest.Must(t, s.lb.Start(ctx))
	s.layTools(t)

	first := s.nodes["m1"].Master
	labtest.Must(t, first.WaitReady(ctx, 3*time.Minute))
	h, err := l.Host(ctx, "min")
	labtest.Must(t, err)
	for id, version := range map[string]string{"web1": lab.Versions[0], "web2": lab.Versions[2]} {
		m, err := h.NewMinion(version, id, hosts[0].Addr)
		labtest.Must(t, err)
		labtest.Must(t, m.Start(ctx))
	}
	labtest.Must(t, first.AcceptKeys(ctx, 3*time.Minute, "web1", "web2"))
	labtest.Must(t, lab.Answering(ctx, first, "web1", "web2"))
	for _, n := range s.nodes {
		labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	}
	return s
}

// layTools makes programs which do to the lab what those of an operator's host do to it.
func (s *docsSite) layTools(t *testing.T) {
	labtest.Must(t, os.Mkdir(s.tools, 0o755))
	for name, text := range map[string]string{
		"systemctl": `exec curl -sS --fail-with-body --unix-socket '` + s.socket + `' -d "$*" http://$(hostname)/` + "\n",
		"scp": `dir='` + s.lab.Dir() + `'/${2%%:*} to=${2#*:}
case $to in /*) ;; *) to=$dir/$to ;; esac
exec cp "$1" "$to"
`,
	} {
		labtest.Must(t, os.WriteFile(filepath.Join(s.tools, name), []byte("#!/bin/sh\n"+text), 0o755))
	}
	ln, err := net.Listen("unix", s.socket)
	labtest.Must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.systemctl(r.Context(), r.Host, strings.Fields(string(raw)))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); <-served })
}

// systemctl does what it is told to a service of the host, and returns when that is ready, as services with Type=notify
// are.
func (s *docsSite) systemctl(ctx context.Context, host string, args []string) error {
	args = slices.DeleteFunc(args, func(a string) bool { return a == "--now" })
	if len(args) != 2 {
		return fmt.Errorf("systemctl of the lab takes a verb and a unit, not %q", args)
	}
	verb, unit, n := args[0], strings.TrimSuffix(args[1], ".service"), s.nodes[host]
	var p *lab.Process
	switch {
	case unit == "haproxy" && host == "lb":
		p = s.lb.Process
	case n == nil:
		return fmt.Errorf("there is no unit %s on %s", unit, host)
	case unit == "salt-master":
		p = n.Master.Process
	case unit == "saltclusterd":
		p = n.Daemon.Process
	}
	if p == nil {
		return fmt.Errorf("there is no unit %s", unit)
	}
	if verb == "stop" || verb == "disable" || verb == "restart" || verb == "reload" {
		if p.Running() {
			if err := p.Stop(ctx); err != nil {
				return err
			}
		}
	}
	if verb == "stop" || verb == "disable" {
		return nil
	}
	if unit == "salt-master" { // where setup and leave have it listen
		n.Master.Addr = n.Addr
		if _, err := os.Stat(filepath.Join(n.Master.ConfigDir, "master.d", "zz-saltclusterd.conf")); err == nil {
			n.Master.Addr = n.Local
		}
	}
	if !p.Running() {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return p.WaitReady(ctx, 2*time.Minute)
}

// try runs a block on its host, again and again if it may, until it does what it shall.
func (s *docsSite) try(t *testing.T, b guides.Runnable) {
	start := time.Now()
	once := func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
		defer cancel()
		code, out, err := s.run(ctx, b)
		if err != nil {
			return err
		}
		if lacks := guides.Lacks(out, strings.Split(s.here(b.On, strings.Join(b.Shows, "\n"), ""), "\n")); code != b.Exit ||
			lacks != "" {
			return fmt.Errorf("%s:%d on %s: exit code %d, wanted %d; lacks %q\n%s\n%s", b.Page, b.Line, b.On, code, b.Exit,
				lacks, b.Script, out)
		}
		return nil
	}
	if b.Within == 0 {
		labtest.Must(t, once(t.Context()))
	} else {
		labtest.Must(t, lab.Eventually(t.Context(), b.Within, b.Name(), once))
	}
	t.Logf("on %s, %.1f s", b.On, time.Since(start).Seconds())
}

var (
	tokenFor  = regexp.MustCompile(`token create --node (\w+)`)
	tokenText = regexp.MustCompile(`(?m)^sct1\.\S+`)
)

func (s *docsSite) run(ctx context.Context, b guides.Runnable) (code int, out string, err error) {
	jid := ""
	if strings.Contains(b.Script, "JID") {
		var list adminapi.JobList
		if err := s.nodes["m1"].Daemon.CtlJSON(ctx, &list, "jobs", "list", "-n", "1"); err != nil {
			return 0, "", err
		}
		if len(list.Jobs) == 0 {
			return 0, "", fmt.Errorf("there is no job")
		}
		jid = list.Jobs[0].JID
	}
	script := s.here(b.On, b.Script, jid)
	host, env := s.lb.Host(), []string{"PATH=" + s.tools + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	if n := s.nodes[b.On]; n != nil {
		host, env = n.Host, n.Place(nil).Env
		for i, kv := range env {
			if path, ok := strings.CutPrefix(kv, "PATH="); ok {
				env[i] = "PATH=" + s.tools + ":" + path
			}
		}
		// Where this host's salt-master is, which packages have in /etc/salt.
		script = fmt.Sprintf("saltclusterctl() { case \"$1 $2\" in setup*|leave*|'keys collect'*) command saltclusterctl \"$@\" --config-dir '%s' --salt-master '%s' ;;\n"+
			"*) command saltclusterctl \"$@\" ;; esac; }\n", n.Master.ConfigDir, n.Master.Command()) + script
	}
	env = append(env, "COLUMNS=1000", "SALTCLUSTER_SERVICE_MANAGER=systemd") // as the guides show them, in whole lines
	if b.Answer != "" {                                                      // questions are asked at a terminal only
		env = append(env, "TYPED="+script, "ANSWER="+strings.ReplaceAll(b.Answer, "TOKEN", s.tokens[b.On]), "TERM=dumb")
		script = `script -qefc 'exec /bin/bash -e -o pipefail -c "$TYPED"' /dev/null <<<"$ANSWER" | tr -d '\r'`
	}
	res, err := host.Exec(ctx, env, "/bin/bash", "-e", "-o", "pipefail", "-c", "exec 2>&1\n"+script)
	printed := tokenText.FindAllString(res.Stdout, -1)
	for i, made := range tokenFor.FindAllStringSubmatch(b.Script, -1) {
		if i < len(printed) {
			s.tokens[made[1]] = printed[i]
		}
	}
	return res.Code, res.Stdout, err
}

// here is a text of the guides with the addresses and paths of the lab.
func (s *docsSite) here(host, text, jid string) string {
	pairs := []string{
		"/etc/haproxy/haproxy.cfg", s.lb.ConfigPath, "ADDRESS-OF-HAPROXY", s.lb.Host().Addr, "10.0.0.5", s.lb.Host().Addr,
		"JID", jid,
	}
	if jid == "" {
		pairs = pairs[:len(pairs)-2]
	}
	for i, name := range []string{"m1", "m2", "m3"} {
		pairs = append(pairs, fmt.Sprint("10.0.0.1", i+1), s.nodes[name].Addr)
	}
	if n := s.nodes[host]; n != nil {
		root := n.Host.Dir()
		pairs = append(pairs, "/root/", root+"/", "/srv/", root+"/srv/", "/etc/salt/", n.Master.ConfigDir+"/")
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// spans stands in for a collector of OpenTelemetry on each host.
type spans struct {
	mu    sync.Mutex
	nodes map[string]map[string]bool // by trace
	raw   strings.Builder
}

func (s *spans) collect(t *testing.T, h *lab.Host) {
	ln, err := h.Listen(t.Context(), "tcp", "127.0.0.1:4318")
	labtest.Must(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var e struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []struct{ TraceID string }
				}
			}
		}
		if err == nil {
			err = json.Unmarshal(raw, &e)
		}
		if err != nil || len(e.ResourceSpans) != 1 || len(e.ResourceSpans[0].ScopeSpans) != 1 {
			t.Errorf("%s sends %s: %v", h.Name, raw, err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.raw.Write(raw)
		for _, one := range e.ResourceSpans[0].ScopeSpans[0].Spans {
			if s.nodes[one.TraceID] == nil {
				s.nodes[one.TraceID] = map[string]bool{}
			}
			s.nodes[one.TraceID][h.Name] = true
		}
	})}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(ln) }()
	t.Cleanup(func() { server.Close(); <-served })
}

// told: requests that one node has relayed to another are one trace of both, and no minion is named.
func (s *spans) told(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	both := 0
	for _, nodes := range s.nodes {
		if len(nodes) > 1 {
			both++
		}
	}
	t.Logf("%d traces, %d of them on two nodes", len(s.nodes), both)
	if both == 0 {
		t.Error("no request is traced on two nodes")
	}
	for _, step := range []string{"_pillar", "_return", "_auth", "open", "wall", "master", "relay", "journal"} {
		if !strings.Contains(s.raw.String(), `"name":"`+step+`"`) {
			t.Errorf("no span is named %s", step)
		}
	}
	for _, id := range []string{"web1", "web2"} {
		if strings.Contains(s.raw.String(), id) {
			t.Errorf("%s is named", id)
		}
	}
}
