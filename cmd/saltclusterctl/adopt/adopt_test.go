package adopt

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/edge/tlsconfig/tlstest"
	"saltclusterd/sidecar/saltcrypt"
)

// host is a directory with what a host with a salt-master has.
type host struct {
	t   *testing.T
	dir string
}

// Lines of /proc/net/tcp: 4505 and 4506, on all addresses and on loopback, and a minion from 10.0.0.9.
const (
	wildcard = "0: 00000000:1199 00000000:0000 0A 0:0 0:0 0 0 0 11\n1: 00000000:119A 00000000:0000 0A 0:0 0:0 0 0 0 12\n"
	loopback = "0: 0100007F:1199 00000000:0000 0A 0:0 0:0 0 0 0 11\n1: 0100007F:119A 00000000:0000 0A 0:0 0:0 0 0 0 12\n"
	minion   = "2: 0B00000A:1199 0900000A:9C40 01 0:0 0:0 0 0 0 13\n"
	nearby   = "3: 0100007F:1199 0100007F:9C41 01 0:0 0:0 0 0 0 14\n"
)

func newHost(t *testing.T, master string) *host {
	h := &host{t, t.TempDir()}
	h.write("bin/salt-master", "#!/bin/sh\necho salt-master 3006.28 '(Sulfur)'\n")
	require.NoError(t, os.Chmod(h.path("bin/salt-master"), 0o755))
	h.write("etc/salt/master", "root_dir: "+h.dir+"\n"+master)
	h.write("etc/salt/pki/master/minions/web1", "key")
	h.write("etc/salt/pki/master/minions/.saltclusterd", "key")
	h.write("etc/salt/pki/master/minions_pre/web2", "key")
	h.listens(wildcard + minion)
	h.write("etc/salt/pki/master/master.pem", string(someKey().PEM()))
	return h
}

// someKey is made once: that takes a second on a slow machine.
var someKey = sync.OnceValue(func() *saltcrypt.MasterKey {
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		panic(err)
	}
	return key
})

func (h *host) path(name string) string { return filepath.Join(h.dir, name) }

func (h *host) write(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(h.path(name)), 0o755))
	require.NoError(h.t, os.WriteFile(h.path(name), []byte(text), 0o640))
}

func (h *host) listens(table string) { h.write("proc/net/tcp", "  sl  local_address\n"+table) }

func (h *host) look(status *adminapi.Status) *Site {
	h.t.Helper()
	s, err := Look(h.t.Context(), Asked{
		Own: h.path("etc/salt/saltclusterd"), Master: h.path("etc/salt/master"), Command: h.path("bin/salt-master"),
		Node: "m1",
		Proc: h.path("proc"), Srv: h.path("srv"),
	}, status)
	require.NoError(h.t, err)
	s.RunnerDir, s.WheelDir = "", ""
	return s
}

const dropInFile = "etc/salt/master.d/zz-saltclusterd.conf"

// serving is the daemon of a member that minions reach.
func serving() *adminapi.Status {
	return &adminapi.Status{
		Cluster: &adminapi.Cluster{ID: "salt", Quorum: adminapi.Quorum{OK: true}},
		Members: []adminapi.Member{{ID: "m1", Self: true}},
		Node:    adminapi.Node{ID: "m1", Edges: []adminapi.Edge{{Name: "pub", Addresses: []string{"10.0.0.11:4505"}}}},
	}
}

func text(checks []doctor.Finding) string {
	var b strings.Builder
	for _, f := range checks {
		fmt.Fprintf(&b, "%s %s %s: %s -> %s\n", f.Level, f.Check, f.Where, f.What, f.Next)
	}
	return b.String()
}

func wants(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		check.Contains(t, got, p)
	}
}

// Roots that the salt-master's user may not write in are named before it matters.
func TestSetup_RootsNotWritable(t *testing.T) {
	h := newHost(t, "")
	states := h.path("srv/salt")
	h.write("srv/salt/top.sls", "base: {}")
	h.write("etc/salt/master.d/site.conf", "user: nobody\nfile_roots: {base: ["+states+"]}\n")
	p := h.look(nil).Plan()
	wants(t, text(p.Checks), "warn permissions "+states+": the user nobody may not write there")
	if os.Getuid() == 0 { // else they are the tester's, and stay his
		wants(t, text(p.Checks), "chown -R nobody: "+states)
	}
	h.write("etc/salt/saltclusterd", "cluster_roots_sync: 'off'\n")
	if got := text(h.look(nil).Plan().Checks); strings.Contains(got, "permissions") {
		t.Errorf("roots that are left alone:\n%s", got)
	}
}

// What opens a root, or creates it, is the first step, but only below /srv and where nobody else works.
func TestSetup_RootSteps(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, whose directories the salt-master's user may not write in")
	}
	h := newHost(t, "")
	require.NoError(t, os.Chmod(h.dir, 0o755)) // else its mode decides about what is below it
	states, pillar, other := h.path("srv/salt"), h.path("srv/pillar"), h.path("usr/share/states")
	h.write("srv/salt/top.sls", "base: {}")
	h.write("usr/share/states/top.sls", "base: {}")
	h.write("etc/salt/master.d/site.conf", fmt.Sprintf(
		"user: nobody\nfile_roots: {base: [%s, %s, %s]}\npillar_roots: {base: [%s]}\n", states, other, h.path("srv/spm/salt"), pillar))
	steps := func(status *adminapi.Status) (commands []string) {
		t.Helper()
		for _, step := range h.look(status).Plan().Steps {
			if step.Kind != OpenRoot {
				break
			}
			commands = append(commands, strings.Join(step.Args, " "))
		}
		return commands
	}
	chown := "chown -R nobody: " + states
	create := "install -d -o nobody -g nogroup " + pillar
	check.EqualSlices(t, steps(nil), []string{chown, create})
	check.EqualSlices(t, steps(serving()), []string{chown}, "a member")
	h.write("srv/salt/.git/HEAD", "ref")
	check.EqualSlices(t, steps(nil), []string{create}, "a repository")
	require.NoError(t, os.Chown(h.path("srv"), 65534, 65534))
	if got := steps(nil); len(got) > 0 {
		t.Errorf("who can create it: %q", got)
	}
}

// A load balancer on the same host is in the way only where it has an address that saltclusterd, or the master behind
// it, is to have. It is not taken for the master.
func TestSetup_LoadBalancerHere(t *testing.T) {
	const vip = "10.0.0.10"
	for name, tc := range map[string]struct {
		master, own, at string
		fails           bool
	}{
		"an address of its own":                 {own: "interface: [10.0.0.11]\n", at: vip},
		"one of saltclusterd's":                 {own: "interface: [10.0.0.11, 10.0.0.10]\n", at: vip, fails: true},
		"one of them, written otherwise":        {own: "interface: ['2001:DB8:0::10']\n", at: "2001:db8::10", fails: true},
		"saltclusterd has all of them":          {at: vip, fails: true},
		"all addresses":                         {own: "interface: [10.0.0.11]\n", at: "0.0.0.0", fails: true},
		"where the master will be":              {own: "interface: [10.0.0.11]\n", at: "127.0.0.1", fails: true},
		"another loopback address":              {own: "interface: [10.0.0.11]\n", at: "127.0.0.9"},
		"where the master is":                   {master: "interface: 127.0.0.9\n", own: "interface: [10.0.0.11]\n", at: "127.0.0.9", fails: true},
		"loopback, but not where the master is": {master: "interface: 127.0.0.9\n", own: "interface: [10.0.0.11]\n", at: "127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, tc.master)
			h.write("etc/salt/saltclusterd", tc.own)
			s := h.look(nil)
			s.Listeners = nil
			for _, port := range []uint16{4505, 4506} {
				s.Listeners = append(s.Listeners,
					doctor.Listener{Addr: netip.AddrPortFrom(netip.MustParseAddr(tc.at), port), Process: "haproxy (pid 7)"})
			}
			if held, runs := s.masterListens(); held || runs {
				t.Errorf("taken for the master: it holds the ports %v, it runs %v", held, runs)
			}
			got := text(s.Plan().Checks)
			if strings.Contains(got, "haproxy (pid 7) listens on an address that saltclusterd needs") != tc.fails {
				t.Errorf("in the way %v:\n%s", !tc.fails, got)
			}
		})
	}
}

// Each time it is run it tells what is left, until nothing is.
func TestSetupStepByStep(t *testing.T) {
	h := newHost(t, "")
	p := h.look(nil).Plan()
	if p.Failed() > 0 || len(p.Files) != 3 {
		t.Fatalf("%d files\n%s", len(p.Files), text(p.Checks))
	}
	wants(t, text(p.Checks), "Salt 3006.28", "1 accepted, 1 pending;", "0.0.0.0:4505", "1 connected now",
		"listens on 127.0.0.1 only")
	wants(t, strings.Join(p.Next, "\n"), "systemctl enable --now saltclusterd", "saltclusterctl bootstrap",
		"systemctl restart salt-master", "status --check")
	secret := p.Files[1]
	if shown, err := json.Marshal(p); err != nil || !secret.Secret || strings.Contains(string(shown), "cluster_secret: ") {
		t.Errorf("the secret is shown: %s, %v", shown, err)
	}
	require.NoError(t, Write(h.path("etc/salt/saltclusterd"), p.Files))
	cfg, err := config.Load(h.path("etc/salt/saltclusterd"))
	if err != nil || cfg.ID != "m1" || cfg.Cluster.ID != "salt" || cfg.Paths.StateDir != h.path("var/lib/saltclusterd") ||
		cfg.Salt.Config != h.path("etc/salt/master") {
		t.Errorf("%v", err)
	}
	if info, err := os.Stat(secret.Path); err != nil || info.Mode().Perm()&0o007 != 0 {
		t.Errorf("the secret's file: %v, %v", info, err)
	}
	if p = h.look(nil).Plan(); p.Failed() > 0 || len(p.Files) != 0 || len(p.Next) != 4 {
		t.Errorf("again: %v, %v\n%s", p.Files, p.Next, text(p.Checks))
	}
	waiting := serving()
	waiting.Node.Edges = nil
	if p = h.look(waiting).Plan(); len(p.Next) != 2 || !strings.HasPrefix(p.Next[0], "systemctl restart salt-master:") {
		t.Errorf("a member: %v", p.Next)
	}
	h.listens(loopback)
	if p = h.look(serving()).Plan(); len(p.Next) != 0 || len(p.Files) != 0 {
		t.Errorf("at the end: %v, %v", p.Files, p.Next)
	}
	h.listens("")
	if p = h.look(serving()).Plan(); len(p.Next) != 2 || !strings.HasPrefix(p.Next[0], "systemctl start salt-master:") {
		t.Errorf("without the master: %v", p.Next)
	}
}

// What is there is respected: a main file of the package, a master with an address and runners of its own.
func TestSetupKeepsWhatIsThere(t *testing.T) {
	h := newHost(t, "interface: 10.0.0.11\nrunner_dirs: [/srv/runners]\npublish_port: 14505\n")
	h.write("etc/salt/saltclusterd", string(config.DefaultFile()))
	h.write("etc/salt/saltclusterd.d/site.conf",
		"cluster_id: production\ncluster_secret: Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4\nmaster_restart_command: [rc-service, salt-master, restart]\n")
	s := h.look(nil)
	s.RunnerDir, s.WheelDir = "/usr/share/saltclusterd/runners", "/usr/share/saltclusterd/wheel"
	p := s.Plan()
	if p.Failed() > 0 || len(p.Files) != 2 || p.ClusterID != "production" {
		t.Fatalf("%+v\n%s", p.Files, text(p.Checks))
	}
	wants(t, p.Files[0].Path+p.Files[0].Text, "saltclusterd.d/setup.conf", "id: m1", "interface: [10.0.0.11]",
		"publish_port: 14505")
	if strings.Contains(p.Files[0].Text, "cluster_id") {
		t.Errorf("says again what is said:\n%s", p.Files[0].Text)
	}
	wants(t, p.Files[1].Text, "- '/srv/runners'", "- '/usr/share/saltclusterd/runners'", "presence_events: False",
		"wheel_dirs:\n  - '/usr/share/saltclusterd/wheel'")
	wants(t, strings.Join(p.Next, "\n"), "rc-service salt-master restart")
	require.NoError(t, Write(s.Asked.Own, p.Files))
	s = h.look(nil)
	s.RunnerDir, s.WheelDir = "/usr/share/saltclusterd/runners", "/usr/share/saltclusterd/wheel"
	if p = s.Plan(); p.Failed() > 0 || len(p.Files) != 0 {
		t.Errorf("again: %+v\n%s", p.Files, text(p.Checks))
	}
}

// What is in the way is said, with what to do about it, and nothing is to be written.
func TestSetupRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		master string
		change func(*host)
		want   string
	}{
		"a transport that minions may not use": {"transport: tcp\n",
			func(h *host) { h.write("etc/salt/saltclusterd", "cluster_transports: [zeromq]\n") }, "fail transport"},
		"a transport that is set later": {"include: late.conf\n",
			func(h *host) { h.write("etc/salt/late.conf", "transport: tcp\n") }, "Remove the line 'transport"},
		"transports in an included file": {"",
			func(h *host) { h.write("etc/salt/master.d/a.conf", "transport_opts: {tcp: {ret_port: 1}}\n") }, "Move transport_opts from"},
		"no certificate": {"transport: tcp\nssl: {certfile: /none.pem}\n", nil, "fail tls"},
		"an include that is later": {"include: late.conf\n",
			func(h *host) { h.write("etc/salt/late.conf", "interface: 10.0.0.11\n") }, "Remove the line 'interface"},
		"keys elsewhere": {"keys.cache_driver: redis\n", func(h *host) { h.version("3008.3") },
			"has its keys in redis"},
		"no drop-ins": {"default_include: other\n", nil, "fail drop-in"},
		"somebody else's drop-in": {"", func(h *host) { h.write(dropInFile, "interface: 127.0.0.1\n") },
			"was not written by saltclusterd"},
		"no key": {"", func(h *host) { h.write("etc/salt/pki/master/master.pem", "?") }, "fail identity"},
		"a mistake of our own": {"", func(h *host) { h.write("etc/salt/saltclusterd", "cluser_id: x\n") },
			"did you mean cluster_id?"},
		"another name": {"", func(h *host) { h.write("etc/salt/saltclusterd", "id: m2\n") },
			"id is m2 there, but the command line says m1"},
		"a witness": {"", func(h *host) { h.write("etc/salt/saltclusterd", "cluster_witness: True\n") },
			"a witness has no salt-master"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, tt.master)
			if tt.change != nil {
				tt.change(h)
			}
			p := h.look(nil).Plan()
			if p.Failed() == 0 || len(p.Files) != 0 || len(p.Next) != 0 {
				t.Errorf("%v, %v", p.Files, p.Next)
			}
			wants(t, text(p.Checks), tt.want)
		})
	}
}

// A master with another transport gets zeromq on loopback, which ends with the drop-in. What ssl says is kept.
func TestSetup_Transports(t *testing.T) {
	dir := t.TempDir()
	ca := tlstest.NewCA(t, "ca")
	cert, key := ca.Issue(tlstest.Wanted{Name: "master", IPs: []string{"10.0.0.11"}})
	tlstest.Write(t, dir, "c.pem", cert, "k.pem", key, "ca.pem", ca.PEM)
	ssl := "ssl: {certfile: " + dir + "/c.pem, keyfile: " + dir + "/k.pem, ca_certs: " + dir + "/ca.pem, cert_reqs: CERT_REQUIRED}\n"
	for name, tt := range map[string]struct {
		master string
		checks []string
	}{
		"tcp": {"transport: tcp\n", []string{"ok transport", "minions keep tcp"}},
		"tcp with TLS": {"transport: tcp\n" + ssl, []string{"minions keep tcp", "ok tls", "minions must have one of their own",
			"saltclusterd would serve them", "cluster_require_tls: True"}},
		"zeromq and tcp": {"transport_opts: {tcp: {publish_port: 4605, ret_port: 4606}}\n", []string{"minions with tcp use the ports 4605 and 4606"}},
		"TLS for later":  {ssl, nil},
		"ws":             {"transport: ws\n", []string{"minions keep ws"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, tt.master)
			before := h.look(nil)
			p := before.Plan()
			if p.Failed() > 0 {
				t.Fatal(text(p.Checks))
			}
			wants(t, text(p.Checks), tt.checks...)
			require.NoError(t, Write(before.Asked.Own, p.Files))
			after := h.look(nil)
			if found := after.Plan(); found.Failed() > 0 || len(found.Files) != 0 || after.Master.Transport != "zeromq" ||
				after.Master.Bool("transport_opts") {
				t.Errorf("afterwards: %s, %v\n%s", after.Master.Transport, found.Files, text(found.Checks))
			}
			l := after.Leaving(nil)
			offered := strings.Join(slices.Sorted(maps.Keys(before.Master.ForMinions())), " and ")
			wants(t, text(l.Checks), "for minions with "+offered)
			require.NoError(t, l.Restore())
			if again := h.look(nil).Master; !reflect.DeepEqual(again.ForMinions(), before.Master.ForMinions()) {
				t.Errorf("left: %v, was %v", again.ForMinions(), before.Master.ForMinions())
			}
		})
	}
}

func (h *host) version(v string) {
	h.write("bin/salt-master", "#!/bin/sh\necho salt-master "+v+"\n")
	require.NoError(h.t, os.Chmod(h.path("bin/salt-master"), 0o755))
}

func TestSetupWarns(t *testing.T) {
	h := newHost(t, "external_auth: {pam: {fred: ['.*']}}\n")
	h.listens(wildcard + minion + nearby)
	h.write("etc/salt/pki/master/.saltclusterd-keys.m1", "stamp")
	h.write("etc/salt/master.d/broken.conf", "a: [")
	p := h.look(nil).Plan()
	if p.Failed() > 0 {
		t.Errorf("%s", text(p.Checks))
	}
	wants(t, text(p.Checks), "1 of this host connected through loopback", "belonged to a cluster", "broken.conf",
		"allow_clear_commands")
}

// A drop-in that somebody wrote by hand and that is enough stays.
func TestDropInByHand(t *testing.T) {
	h := newHost(t, "")
	h.write(dropInFile, "interface: 127.0.0.1\nmaster_id: m1\n")
	p := h.look(nil).Plan()
	if p.Failed() > 0 || len(p.Files) != 2 {
		t.Errorf("%+v\n%s", p.Files, text(p.Checks))
	}
	l := h.look(nil).Leaving(nil)
	if l.Failed() > 0 || l.Aside != h.path(dropInFile)+".off" {
		t.Errorf("%+v\n%s", l, text(l.Checks))
	}
	require.NoError(t, l.Restore())
	if _, err := os.Stat(l.Aside); err != nil {
		t.Error(err)
	}
	// another one, later: the first stays
	h.write(dropInFile, "interface: 127.0.0.1\nmaster_id: m2\n")
	l.Remove = h.path(dropInFile)
	check.ErrorIs(t, l.Restore(), fs.ErrExist, "onto the first")
	if l = h.look(nil).Leaving(nil); l.Aside != h.path(dropInFile)+".off.2" {
		t.Errorf("the second is put aside as %s", l.Aside)
	}
	require.NoError(t, l.Restore())
	for name, want := range map[string]string{".off": "m1", ".off.2": "m2"} {
		if text, err := os.ReadFile(h.path(dropInFile) + name); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
}

// The salt-master's files are not touched unless saltclusterd's are without a mistake.
func TestWriteOwnFirst(t *testing.T) {
	h := newHost(t, "")
	p := h.look(nil).Plan()
	h.write("etc/salt/saltclusterd.d/zz.conf", "nonsense: 1\n")
	if err := Write(h.path("etc/salt/saltclusterd"), p.Files); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(h.path(dropInFile)); !os.IsNotExist(err) {
		t.Errorf("the drop-in is there: %v", err)
	}
}

// A master that comes to a cluster makes no secret, and is told how its minions' keys come along.
func TestSetupToJoin(t *testing.T) {
	h := newHost(t, "")
	look := func(join string, status *adminapi.Status) *Site {
		s := h.look(status)
		s.Asked.Join = join
		return s
	}
	s := look("m0", nil)
	p := s.Plan()
	if p.Failed() > 0 || len(p.Files) != 2 {
		t.Fatalf("%+v\n%s", p.Files, text(p.Checks))
	}
	wants(t, text(p.Checks), "join refuses unless the cluster has the same one", "warn keys",
		"keys collect m1.keys here; copy the file to a member, and there: saltclusterctl keys merge m1.keys", "warn roots")
	wants(t, p.Files[0].Text, "cluster_join_token_file: "+h.path("etc/salt/saltclusterd.join-token"))
	wants(t, strings.Join(p.Next, "\n"), "saltclusterctl join m0 --token-file -", "systemctl restart salt-master")
	require.NoError(t, Write(s.Asked.Own, p.Files))
	p = look("", nil).Plan() // whoever runs it again need not say it again
	if p.Failed() > 0 || len(p.Files) != 0 || !strings.HasPrefix(p.Next[1], "saltclusterctl join PEER --token-file -:") {
		t.Errorf("again: %+v, %v\n%s", p.Files, p.Next, text(p.Checks))
	}
	h.write("etc/salt/pki/master/.saltclusterd-keys.m1", "stamp")
	if p = look("m0", nil).Plan(); strings.Contains(text(p.Checks), "keys collect") {
		t.Errorf("it belonged to a cluster before:\n%s", text(p.Checks))
	}
	if p = look("m0", serving()).Plan(); len(p.Next) != 2 || strings.Contains(text(p.Checks), "join") {
		t.Errorf("a member: %v\n%s", p.Next, text(p.Checks))
	}

	h = newHost(t, "")
	h.write("etc/salt/saltclusterd", "cluster_id: salt\ncluster_secret: Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4\n")
	p = look("m0", nil).Plan()
	if p.Failed() > 0 || strings.Contains(p.Files[0].Text, "token") ||
		!strings.HasPrefix(p.Next[1], "saltclusterctl join m0: cluster_secret proves the right to join") {
		t.Errorf("with a secret: %+v, %v\n%s", p.Files, p.Next, text(p.Checks))
	}
}

// A host with loopback addresses only is complained about unless interface says where minions come in.
func TestNoAddressButLoopback(t *testing.T) {
	for own, complained := range map[string]bool{"": true, "interface: [127.0.0.3]\n": false} {
		h := newHost(t, "")
		h.write("etc/salt/saltclusterd", own)
		s := h.look(nil)
		s.Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1")}
		if got := text(s.Plan().Checks); strings.Contains(got, "no address except loopback") != complained {
			t.Errorf("with %q:\n%s", own, got)
		}
	}
}
