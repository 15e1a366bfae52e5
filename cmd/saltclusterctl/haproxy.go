package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/haproxy"
	"saltclusterd/cmd/saltclusterctl/support"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/durable"
	"saltclusterd/sidecar/adminapi"
)

func newHAProxyCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:  "haproxy",
		Usage: "print an HAProxy configuration for this cluster",
		Description: "The servers are the members, at their peer addresses, with this node's ports and options; the other nodes should have the same.\n" +
			"To use it here: saltclusterctl haproxy --check --file /etc/haproxy/haproxy.cfg, or with --fragment into a file of its own beside\n" +
			"others, then systemctl reload haproxy. For HAProxy on another host: --file FILE without --check, copy FILE there, and run\n" +
			"haproxy -c -f FILE. Minions use the address of HAProxy as their master. saltclusterctl doctor --haproxy FILE checks a file that\n" +
			"is in use. A FILE that was not made by this command, or changed since, is replaced only when you agree, and kept as FILE.orig.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "bind", Usage: "listen on `ADDRESS` instead of all of IPv4; may be repeated"},
			&cli.StringSliceFlag{Name: "server",
				Usage: "use `ID=ADDRESS` for a node; may be repeated. With it, no node is asked for the members"},
			&cli.BoolFlag{Name: "send-proxy",
				Usage: "send the minions' addresses to the nodes, which need proxy_protocol: True for it"},
			&cli.IntFlag{Name: "agent-port", Usage: "use the agent-check on `PORT` of the nodes",
				DefaultText: "agent_check_listen"},
			&cli.IntFlag{Name: "minions", Usage: "make room for `N` minions",
				DefaultText: "twice the present number, at least 5000"},
			&cli.IntFlag{Name: "api", Usage: "also balance salt-api, which listens on `PORT` of every node; a client stays on one node",
				DefaultText: "none"},
			&cli.StringFlag{Name: "stats-socket", Usage: "HAProxy's own admin socket at `PATH`"},
			&cli.StringFlag{Name: "user",
				Usage: "run HAProxy as user and group `ACCOUNT` once it has opened its ports; on Debian and Red Hat: haproxy", DefaultText: "the user that starts it"},
			&cli.BoolFlag{Name: "fragment", Usage: "without global and defaults"},
			&cli.StringFlag{Name: "file",
				Usage: "write it to `FILE` instead of printing it; after an error FILE is unchanged"},
			console.YesFlag(),
			&cli.BoolFlag{Name: "bare",
				Usage: "for salt-masters without saltclusterd: HAProxy only checks whether their ports answer"},
			&cli.BoolFlag{Name: "check",
				Usage: "check it with the haproxy of this host first; exit code 10 when that finds a problem"},
		},
		Action: console.WithoutArgs(e, runHAProxy),
	})
}

// balanced is what the verb shows: the text, or where it is, and what it was made of.
type balanced struct {
	Servers []haproxy.Server `json:"servers"`
	Config  string           `json:"config"`
	File    string           `json:"file,omitempty"`
	Kept    string           `json:"kept,omitempty"` // the former File, unless it was made by this verb
}

func runHAProxy(c *cli.Context, e *console.Env) error {
	facts, err := balancerFacts(e, c)
	if err != nil {
		return err
	}
	if n := c.Int("agent-port"); n != 0 {
		facts.AgentPort = n
	}
	if c.Bool("bare") {
		facts.HealthPort, facts.AgentPort, facts.Heartbeat, facts.ProxyProtocol = 0, 0, 0, false
	}
	facts.Minions = max(2*facts.Minions, 5000)
	if n := c.Int("minions"); n > 0 {
		facts.Minions = n
	}
	if strings.ContainsAny(c.String("user"), " \t\r\n#") {
		return console.Usagef("--user haproxy", "no such user %q", c.String("user"))
	}
	if port := c.Int("api"); port < 0 || port > 65535 || port == facts.PublishPort || port == facts.RetPort {
		return console.Usagef("--api 8000", "salt-api cannot be on port %d", port)
	}
	o := haproxy.Options{Bind: c.StringSlice("bind"), StatsSocket: c.String("stats-socket"), User: c.String("user"),
		Fragment: c.Bool("fragment"), API: c.Int("api")}
	if c.Bool("send-proxy") {
		o.PublishProxy, o.RequestProxy = "send-proxy-v2", "send-proxy-v2"
	}
	text, err := haproxy.Write(facts, o)
	if err != nil {
		return err
	}
	text = haproxy.Seal(text)
	if c.Bool("check") {
		if err := checkWithHAProxy(c.Context, text); err != nil {
			return err
		}
	}
	if host := facts.HealthHost; host != "" && !c.Bool("bare") {
		fmt.Fprintf(e.Stderr, "health_listen is %s only: an HAProxy on another host will consider every node down\n",
			console.Clean(host))
	}
	path := c.String("file")
	if path == "" {
		return e.PrintValue(c, balanced{Servers: facts.Servers, Config: text},
			func(s *console.Screen) { s.WriteString(text) })
	}
	out := balanced{Servers: facts.Servers, Config: text, File: path}
	if out.Kept, err = writeBalancer(e, c, path, text); err != nil {
		return err
	}
	return e.PrintValue(c, out, func(s *console.Screen) {
		s.Line("%s: %s", console.Clean(path), wording.Plural(len(facts.Servers), "server"))
		if out.Kept != "" {
			s.Line("the former file is kept as %s", console.Clean(out.Kept))
		}
	})
}

// writeBalancer puts a text in the place of what a file has, also where that is a link to it. A file that was not made
// by this verb is replaced only with consent, and kept.
func writeBalancer(e *console.Env, c *cli.Context, path, text string) (kept string, err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	old, mode, err := readReplaced(path)
	if err != nil {
		return "", err
	}
	if old != "" && !haproxy.IsSealed(old) {
		question := fmt.Sprintf("%s was not made by saltclusterctl haproxy, or was changed since: replace it? It is kept as %s",
			console.Clean(path), console.Clean(freeName(path)))
		if err := e.AskConsent(c, question); err != nil {
			return "", err
		}
		kept = freeName(path)
		if err := console.WriteNew(kept, []byte(old)); err != nil {
			return "", fmt.Errorf("keep the former %s: %w", path, err)
		}
	}
	return kept, durable.WriteFile(path, []byte(text), mode)
}

// readReplaced reads a file that is to be replaced, and its mode; nothing where there is none.
func readReplaced(path string) (text string, mode os.FileMode, err error) {
	f, err := console.OpenReplaced(path)
	if err != nil {
		return "", 0, err
	}
	mode = 0o644
	if st, err := os.Stat(path); err == nil {
		mode = st.Mode().Perm()
	}
	if f == nil {
		return "", mode, nil
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, haproxy.MaxFile+1))
	if err == nil && len(raw) > haproxy.MaxFile {
		err = console.Refusedf("name another file", "%s exists and has more than %d bytes", path, haproxy.MaxFile)
	}
	return string(raw), mode, err
}

// freeName is a name beside a file under which it can be kept.
func freeName(path string) string {
	name := path + ".orig"
	for n := 2; ; n++ {
		if _, err := os.Lstat(name); err != nil {
			return name
		}
		name = fmt.Sprintf("%s.orig%d", path, n)
	}
}

// balancerFacts asks the daemon what its cluster is like, or with --server the configuration files.
func balancerFacts(e *console.Env, c *cli.Context) (haproxy.Facts, error) {
	named := c.StringSlice("server")
	if len(named) > 0 {
		cfg, err := config.Read(e.ConfigPath(c))
		if err != nil && len(cfg.Files()) > 0 {
			return haproxy.Facts{}, fmt.Errorf("the configuration has errors; saltclusterctl config check lists them all: %w",
				err)
		}
		f := support.FactsOf(cfg.Show())
		for _, s := range named {
			id, address, ok := strings.Cut(s, "=")
			if !ok || id == "" || address == "" {
				return f, console.Usagef("--server m1=10.0.0.11", "%q is not ID=ADDRESS", s)
			}
			f.Servers = append(f.Servers, haproxy.Server{Name: id, Address: strings.Trim(address, "[]")})
		}
		return f, nil
	}
	cfg, err := console.AskAdmin(c, e, (*adminapi.Client).Config)
	if err != nil {
		return haproxy.Facts{}, err
	}
	members, err := console.AskAdmin(c, e, (*adminapi.Client).Members)
	if err != nil {
		return haproxy.Facts{}, err
	}
	f := support.FactsOf(cfg)
	support.AddMembers(&f, members.Members)
	return f, nil
}

// checkWithHAProxy has the real one look at a configuration.
func checkWithHAProxy(ctx context.Context, text string) error {
	bin, err := findHAProxy()
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "saltclusterctl-haproxy-*.cfg")
	if err != nil {
		return fmt.Errorf("write a file for haproxy -c: %w", err)
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write a file for haproxy -c: %w", err)
	}
	if out, err := exec.CommandContext(ctx, bin, "-c", "-f", file.Name()).CombinedOutput(); err != nil {
		said := console.SplitLines(string(out))
		for i := range said {
			said[i] = console.Clean(said[i])
		}
		return console.Problemf("", "haproxy rejects it: %v\n%s", err, strings.Join(said, "\n"))
	}
	cfg, err := haproxy.Parse(text)
	if err != nil {
		return fmt.Errorf("read what was written: %w", err)
	}
	if found := haproxy.Files(cfg, doctor.OpenFiles("/proc")); len(found) > 0 { // which haproxy -c does not look at
		return console.Problemf(found[0].Next, "haproxy accepts it, but would not start: %s", found[0].What)
	}
	return nil
}

// findHAProxy looks where distributions put it, too: sbin is not in everyone's PATH.
func findHAProxy() (string, error) {
	if bin, err := exec.LookPath("haproxy"); err == nil {
		return bin, nil
	}
	for _, bin := range []string{"/usr/sbin/haproxy", "/usr/local/sbin/haproxy"} {
		if _, err := os.Stat(bin); err == nil {
			return bin, nil
		}
	}
	return "", &adminapi.Error{Code: adminapi.CodeNotFound, Message: "there is no haproxy on this host",
		Hint: "leave --check out, and run haproxy -c -f FILE on HAProxy's host"}
}
