package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/haproxy"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// examination is what is known while the doctor looks.
type examination struct {
	c    *cli.Context
	e    *console.Env
	proc string

	cfg     *config.Config
	options adminapi.Config
	status  adminapi.Status
	checkup adminapi.Checkup
	denied  bool // this user may not ask the daemon
	down    bool // it does not run
	facts   haproxy.Facts
	found   []doctor.Finding
}

func (p *examination) addFindings(found ...doctor.Finding) { p.found = append(p.found, found...) }

func (p *examination) examineAll() {
	p.checkConfig()
	p.checkDaemon()
	p.facts = FactsOf(p.options)
	AddMembers(&p.facts, p.status.Members)
	p.checkHost()
	p.checkNetwork()
	p.checkBalancer()
}

// checkConfig reads the files, which may be wrong while the daemon still runs with older ones.
func (p *examination) checkConfig() {
	cfg, err := config.Load(p.e.ConfigPath(p.c))
	p.cfg, p.options = cfg, cfg.Show()
	p.addFindings(judgeConfig(p.e.ConfigPath(p.c), len(cfg.Files()), err))
}

func judgeConfig(path string, files int, err error) doctor.Finding {
	found, _ := errors.AsType[config.Findings](err)
	switch denied := found.Denied(); {
	case err == nil:
		return doctor.Finding{Check: "config", Level: doctor.OK, What: wording.Plural(files, "file") + " without errors"}
	case denied != nil:
		return doctor.Finding{Check: "config", Level: doctor.Skip, What: "this user may not read all of it: " + denied.String(),
			Next: "run it as root"}
	}
	return doctor.Finding{
		Check: "config", Level: doctor.Fail, Where: path, What: "has errors, the first: " + firstLine(err.Error()),
		Why: "saltclusterd cannot start with it, and an upgrade is refused", Next: "saltclusterctl config check",
	}
}

func (p *examination) checkDaemon() {
	st, err := console.AskAdmin(p.c, p.e, (*adminapi.Client).Status)
	if p.denied = adminapi.IsDenied(err); p.denied {
		p.addFindings(doctor.Finding{
			Check: "daemon", Level: doctor.Warn, What: err.Error(),
			Why:  "not checked, because only saltclusterd knows them: problems, members, clocks, ports, permissions",
			Next: adminapi.HintOf(err),
		})
		return
	}
	if err != nil {
		why := "it could not be checked whether this node serves minions"
		if p.down = adminapi.IsDown(err); p.down {
			why = "minions cannot use this node, and jobs published on its master do not leave this host"
		}
		p.addFindings(doctor.Finding{
			Check: "daemon", Level: doctor.Fail, What: err.Error(), Why: why,
			Next: cmp.Or(adminapi.HintOf(err), "systemctl status saltclusterd; journalctl -u saltclusterd -n 50"),
		})
		return
	}
	p.status = st
	p.addFindings(doctor.Problems(st)...)
	p.addFindings(doctor.Versions(st.Members)...)
	if cfg, err := console.AskAdmin(p.c, p.e, (*adminapi.Client).Config); err == nil {
		p.options = cfg
	}
	if p.checkup, err = console.AskAdmin(p.c, p.e, (*adminapi.Client).Checkup); err != nil {
		p.checkup.Node = st.Node.ID
		p.addFindings(doctor.Finding{Check: "peers", Level: doctor.Skip, What: "saltclusterd does not report this: " + err.Error(),
			Next: "saltclusterctl upgrade, if it is older than this tool"})
		return
	}
	p.addFindings(doctor.Clocks(p.checkup.Node, doctor.WithoutKnown(p.checkup.Peers, st))...)
}

// checkHost looks at ports, files and limits of this machine.
func (p *examination) checkHost() {
	ports := doctor.Ports{Publish: p.facts.PublishPort, Ret: p.facts.RetPort, Interface: p.cfg.Edge.Interface,
		Witness: p.cfg.Cluster.Witness, Down: p.down}
	for _, edge := range p.status.Node.Edges {
		ports.Ours = append(ports.Ours, edge.Addresses...)
	}
	if have, err := doctor.HostAddresses(); err != nil {
		p.addFindings(doctor.Finding{Check: "addresses", Level: doctor.Skip, What: err.Error()})
	} else {
		p.addFindings(doctor.Addresses(p.cfg.Edge.Interface, p.cfg.Cluster.Advertise, have)...)
	}
	switch have, err := doctor.Listeners(p.proc, ports.Publish, ports.Ret); {
	case p.denied: // neither saltclusterd nor /proc tells this user which listeners are saltclusterd's
		p.addFindings(doctor.Finding{Check: "ports", Level: doctor.Skip, What: "this user cannot see which processes listen on the ports"})
	case err != nil:
		p.addFindings(doctor.Finding{Check: "ports", Level: doctor.Skip, What: err.Error()})
	default:
		p.addFindings(doctor.JudgePorts(ports, have)...)
	}
	if !p.cfg.Cluster.Witness {
		p.addFindings(doctor.MasterConfig(p.cfg.Salt.Config, p.saltMajor())...)
	}
	p.addFindings(doctor.Certificate(p.cfg.Paths.StateDir+"/node.crt", time.Now())...)
	if p.checkup.PID == 0 {
		return
	}
	p.addFindings(doctor.Inotify(p.proc, p.checkup.PID)...)
	paths := []doctor.Path{{Path: p.cfg.Paths.StateDir, Writes: true, Secret: true},
		{Path: p.cfg.Paths.RunDir, Writes: true}}
	if m := p.checkup.Master; m != nil {
		paths = append(paths,
			doctor.Path{Path: m.PKIDir, Writes: true}, doctor.Path{Path: m.PKIDir + "/minions", Writes: true},
			doctor.Path{Path: m.PKIDir + "/master.pem", Secret: true}, doctor.Path{Path: m.CacheDir, Writes: true},
			doctor.Path{Path: m.CacheDir + "/jobs", Writes: true}, doctor.Path{Path: m.SockDir})
	}
	name := strconv.Itoa(p.checkup.UID)
	if m := p.checkup.Master; m != nil {
		name = m.User
	}
	who := doctor.AccountOfProcess(p.proc, p.checkup.PID, name, uint32(p.checkup.UID), uint32(p.checkup.GID))
	p.addFindings(doctor.Permissions(who, paths)...)
	if m := p.checkup.Master; m != nil {
		p.addFindings(doctor.Roots(who, m.Roots, p.cfg.Roots.Ignore)...)
		p.addFindings(p.examineTLS(who)...)
	}
	if cluster, m := p.status.Cluster, p.checkup.Master; cluster != nil && m != nil {
		p.addFindings(doctor.Identity(m.PKIDir+"/master.pub", cluster.IdentityFingerprint)...)
		p.addFindings(doctor.MinionsMaster("/etc/salt/pki/minion/minion_master.pub", cluster.IdentityFingerprint)...)
	}
}

// saltMajor is that of the salt-master's version; the newest, while saltclusterd does not report this.
func (p *examination) saltMajor() int {
	if m := p.checkup.Master; m != nil {
		if v, err := localmaster.ParseVersion(m.Version); err == nil {
			return v.Major
		}
	}
	return 3008
}

// checkNetwork goes where minions go.
func (p *examination) checkNetwork() {
	ctx, cancel := context.WithTimeout(p.c.Context, max(p.c.Duration("timeout"), console.AskTimeout))
	defer cancel()
	p.addFindings(doctor.Names(ctx, p.cfg.Cluster.Peers)...)
	var targets []doctor.Target
	if p.facts.ProxyProtocol { // the nodes expect the balancer's header, which this tool does not send
		p.addFindings(doctor.Finding{
			Check: "probe", Level: doctor.Skip,
			What: "the nodes' 4505 and 4506 are not tried: with proxy_protocol they accept only the load balancer",
			Next: "--via LOAD-BALANCER tries the path that minions take",
		})
	} else {
		targets = doctor.TargetsOf(p.status.Members, p.facts.PublishPort, p.facts.RetPort)
	}
	for _, via := range p.c.StringSlice("via") {
		t, err := doctor.ParseTarget(via, p.facts.PublishPort, p.facts.RetPort)
		if err != nil {
			p.addFindings(doctor.Finding{Check: "probe", Level: doctor.Fail, What: err.Error(), Next: "--via 10.0.0.5"})
			continue
		}
		p.addFindings(doctor.Names(ctx, []string{t.Host})...)
		targets = append(targets, t)
	}
	p.addFindings(doctor.Probe(ctx, targets)...)
}

// checkBalancer judges the configuration of HAProxy that was named, or stands at the usual place.
func (p *examination) checkBalancer() {
	path, usual := p.c.String("haproxy"), "/etc/haproxy/haproxy.cfg"
	if path == "" {
		path = usual
	}
	text, err := p.readBalancer(path)
	switch {
	case os.IsNotExist(err) && !p.c.IsSet("haproxy"):
		return
	case err != nil:
		p.addFindings(doctor.Finding{
			Check: "haproxy", Level: doctor.Fail, What: "HAProxy's configuration " + path + " cannot be read: " + wording.Cause(err),
			Next: "ssh LOAD-BALANCER cat /etc/haproxy/haproxy.cfg | saltclusterctl doctor --haproxy -, if it is on another host",
		})
		return
	}
	cfg, err := haproxy.Parse(text)
	if err != nil {
		p.addFindings(doctor.Finding{Check: "haproxy", Level: doctor.Fail, Where: path, What: err.Error(),
			Next: "haproxy -c -f " + path})
		return
	}
	carries := slices.ContainsFunc(cfg.Proxies, func(x haproxy.Proxy) bool {
		return slices.ContainsFunc(x.Binds, func(b haproxy.Bind) bool {
			return b.Port == p.facts.PublishPort || b.Port == p.facts.RetPort
		})
	})
	if !carries && !p.c.IsSet("haproxy") {
		return // it is about something else
	}
	facts := p.facts
	if path == usual { // that of this host
		facts.LocalPorts, facts.OpenFiles = doctor.LocalPorts(p.proc), doctor.OpenFiles(p.proc)
	}
	found := haproxy.Judge(cfg, facts)
	for _, f := range found {
		where := path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", path, f.Line)
		}
		level := doctor.Warn
		if f.Level == haproxy.Fail {
			level = doctor.Fail
		}
		p.addFindings(doctor.Finding{Check: "haproxy", Level: level, Where: where, What: f.What, Why: f.Why, Next: f.Next})
	}
	if len(found) == 0 {
		p.addFindings(doctor.Finding{Check: "haproxy", Level: doctor.OK, Where: path, What: "fits the cluster"})
	}
}

func (p *examination) readBalancer(path string) (string, error) {
	if path == "-" {
		raw, err := io.ReadAll(io.LimitReader(p.e.Stdin, haproxy.MaxFile+1))
		return string(raw), err
	}
	f, err := console.OpenInput(p.c.Context, path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, haproxy.MaxFile+1))
	return string(raw), err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

func joinQuoted(words []string) string {
	quoted := make([]string, 0, len(words))
	for _, w := range words {
		quoted = append(quoted, strconv.Quote(w))
	}
	return strings.Join(quoted, ", ")
}

// examineTLS looks at the certificates that minions are shown.
func (p *examination) examineTLS(who doctor.Account) []doctor.Finding {
	master, err := localmaster.LoadConfig(p.cfg.Salt.Config, localmaster.Version{Major: p.saltMajor()})
	if err != nil {
		return nil // doctor.MasterConfig says it
	}
	return doctor.TLS(master, who, p.cfg.Edge.RequireTLS, time.Now())
}
