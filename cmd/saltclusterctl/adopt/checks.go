package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/node"
	"saltclusterd/paths"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// checks looks at a Site, one line for each look.
type checks struct {
	site          *Site
	node, cluster string
	found         []doctor.Finding
	rootSteps     []Step
	moved         []keyset.Key // from the directory of Salt's own cluster, where the salt-master's lacks some of them
}

func (c *checks) addFinding(check string, level doctor.Level, where, what, why, next string) {
	c.found = append(c.found, doctor.Finding{Check: check, Level: level, Where: where, What: what, Why: why, Next: next})
}

func (c *checks) addOK(check, where, format string, args ...any) {
	c.addFinding(check, doctor.OK, where, fmt.Sprintf(format, args...), "", "")
}

func (c *checks) checkSalt() {
	s := c.site
	c.addOK("salt", s.Master.Path, "Salt %s (%s), user %s", s.Master.Version, s.Command, s.Master.User)
	for _, w := range s.Master.Warnings {
		c.addFinding("salt", doctor.Warn, "", w, "the salt-master ignores that file", "correct the file")
	}
	if dir := filepath.Dir(s.Master.Path); s.UID != 0 && !isWritable(dir) {
		c.addFinding("salt", doctor.Fail, dir, "this user may not write there", "", "run this command as root")
	}
}

// isReplicated says whether the cluster replicates the roots of this host.
func (c *checks) isReplicated() bool {
	return c.site.Own.Roots.Sync != config.RootsOff && c.site.Own.Cluster.IsolatedFilesystem
}

// checkRoots: what other nodes edit is installed by the salt-master's user, as which saltclusterd runs.
func (c *checks) checkRoots() {
	s := c.site
	if !c.isReplicated() {
		return
	}
	who, err := lookupAccount(s.Master.User)
	if err != nil {
		c.addFinding("salt", doctor.Warn, s.Master.SetBy("user"), err.Error(),
			"neither the salt-master nor saltclusterd can start as that user", "set the option user to a user that exists")
		return
	}
	found := doctor.Roots(who, rootDirs(s.Master), s.Own.Roots.Ignore)
	c.found = append(c.found, found...)
	if s.UID != 0 {
		return
	}
	for _, f := range found {
		if f.Command != nil && paths.Within(f.Where, s.Asked.Srv) {
			c.addRootStep(f.Command, "lets saltclusterd install there, as the user "+who.Name+", what other nodes have")
		}
	}
	if s.isMember() {
		return
	}
	for _, dir := range rootDirs(s.Master) {
		if !paths.Within(dir, s.Asked.Srv) {
			continue
		}
		if command := doctor.CreateRootCommand(who, dir); command != nil {
			c.addRootStep(command, "the user "+who.Name+" may not create it, and other nodes may have files there")
		}
	}
}

func (c *checks) addRootStep(command []string, why string) {
	c.rootSteps = append(c.rootSteps, Step{Kind: OpenRoot, Command: strings.Join(command, " "), Args: command, Why: why})
}

// lookupAccount finds a user by name.
func lookupAccount(name string) (doctor.Account, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return doctor.Account{}, err
	}
	uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
	gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
	return doctor.AccountOf(u.Username, uint32(uid), uint32(gid)), errors.Join(errUID, errGID)
}

// rootDirs are the directories of a salt-master's file_roots and pillar_roots.
func rootDirs(m *localmaster.Config) []string {
	var out []string
	for _, option := range []string{localmaster.FileRoots, localmaster.PillarRoots} {
		for _, dirs := range m.Roots(option) {
			for _, dir := range dirs {
				if filepath.IsAbs(dir) {
					out = append(out, filepath.Clean(dir))
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (c *checks) checkOwn() {
	s := c.site
	before := len(c.found)
	for _, f := range s.OwnWrong {
		c.addFinding("config", doctor.Fail, s.Asked.Own, f.String(), "saltclusterd does not start with this error",
			"correct it; saltclusterctl config check lists all errors")
	}
	if s.Own.Cluster.Witness {
		c.addFinding("config", doctor.Fail, s.OwnSource["cluster_witness"], "this node is configured as a witness: a witness has no salt-master",
			"", "remove cluster_witness from that file, or do not run setup on this host")
	}
	for _, o := range []struct{ name, asked, is string }{{"id", s.Asked.Node, s.Own.ID},
		{"cluster_id", s.Asked.ClusterID, s.Own.Cluster.ID}} {
		if at, set := s.OwnSource[o.name]; set && o.asked != "" && o.asked != o.is {
			c.addFinding("config", doctor.Fail, at, fmt.Sprintf("%s is %s there, but the command line says %s", o.name, o.is, o.asked),
				"", "change it in that file, or leave the flag out")
		}
	}
	if _, err := node.ParseID(c.node); err != nil {
		c.addFinding("config", doctor.Fail, "", err.Error(), "", "choose another name, for example --node m1")
	}
	if len(c.found) == before {
		c.addOK("config", s.Asked.Own, "this node is %s in the cluster %s", c.node, c.cluster)
	}
}

func (c *checks) checkIdentity(becomes string) {
	s := c.site
	path := filepath.Join(s.Master.PkiDir, "master.pem")
	switch {
	case s.native != nil:
		path = s.native.keyFile()
	case Store(s.Master) != nil:
		path = s.Master.PkiDir // in the master's own key store
	}
	switch {
	case s.Key != nil:
		c.addOK("identity", path, "%s: %s", becomes, saltcrypt.Fingerprint(s.Key.PublicText()))
	case errors.Is(s.KeyErr, fs.ErrNotExist) && s.native != nil:
		c.addFinding("identity", doctor.Fail, path, "does not exist: Salt's own cluster has never run on this host",
			"the minions of that cluster trust this key, so setup needs it",
			"start the salt-master once, or remove cluster_id and the other cluster_ options from "+s.native.where)
	case s.native != nil && s.KeyErr != nil && !errors.Is(s.KeyErr, fs.ErrPermission):
		c.addFinding("identity", doctor.Fail, path, s.KeyErr.Error(), "no minion could trust the cluster",
			"if the key has a passphrase (cluster_key_pass), rewrite it without one: saltclusterd uses no passphrase")
	case errors.Is(s.KeyErr, fs.ErrPermission):
		c.addFinding("identity", doctor.Fail, path, "this user may not read it", "", "run this command as root")
	case errors.Is(s.KeyErr, fs.ErrNotExist) && s.Master.Text("keys.cache_driver") == "mmap_key":
		c.addOK("identity", s.Master.PkiDir, "the key is in the master's own key store (mmap_key): %s", becomes)
	case errors.Is(s.KeyErr, fs.ErrNotExist):
		c.addFinding("identity", doctor.Warn, path, "does not exist yet: this salt-master has never run",
			s.keyToCome(), "")
	default:
		c.addFinding("identity", doctor.Fail, path, s.KeyErr.Error(), "no minion could trust the cluster",
			"restore it from a backup")
	}
}

func (c *checks) checkKeys() {
	s := c.site
	names := []string{"accepted", "pending", "rejected", "denied"}
	var parts []string
	for i, dir := range keyDirs {
		if n := s.Keys[dir]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, names[i]))
		}
	}
	if len(parts) == 0 {
		parts = []string{"none"}
	}
	end := "; they are not changed"
	switch {
	case len(s.Keys) == 0:
		end = ""
	case s.native != nil && s.KeysDir != s.Master.PkiDir:
		end = "; they are copied to " + s.Master.PkiDir
	case s.isJoining():
		end = ""
	}
	if s.keysHidden {
		c.addFinding("keys", doctor.Skip, s.KeysDir, "this user may not read the minion keys", "", "run this command as root")
	} else {
		c.addOK("keys", s.KeysDir, "minion keys: %s%s", strings.Join(parts, ", "), end)
	}
	if bare, err := s.withoutDropIn(); err == nil && bare.Version.Major >= 3008 {
		if d := bare.Text("keys.cache_driver"); d != "localfs_key" && d != "mmap_key" {
			c.addFinding("keys", doctor.Fail, "keys.cache_driver", "the salt-master has its keys in "+d,
				"saltclusterd cannot read them there, and would create a cluster without minions",
				"move the keys to files first: set keys.cache_driver: localfs_key, and accept them again with salt-key")
		}
	}
	if len(s.Markers) > 0 && !s.isMember() {
		c.addFinding("keys", doctor.Warn, s.Markers[0], "this master belonged to a cluster before",
			"bootstrap refuses, because that cluster may still exist",
			"join that cluster again: saltclusterctl join PEER; if none of its nodes is left, remove this file")
	}
}

// checkPorts looks at what listens on the master's two ports. The master may hold them now, a load balancer may not.
// Any other process, except saltclusterd, is taken for the master.
func (c *checks) checkPorts() {
	s := c.site
	var listens []string
	for _, l := range s.Listeners {
		if port := int(l.Addr.Port()); port != s.Master.PublishPort && port != s.Master.RetPort || s.isOurs(l) {
			continue
		}
		text := l.Addr.String()
		if l.Process != "" {
			text += " " + l.Process
		}
		if isLoadBalancer(l) {
			if s.needs(l.Addr.Addr()) {
				c.addFinding("ports", doctor.Fail, l.Addr.String(), l.Process+" listens on an address that saltclusterd needs",
					"minions would not reach saltclusterd",
					"give the load balancer an address of its own (saltclusterctl haproxy --fragment --bind ADDRESS), "+
						"and saltclusterd the others: interface in "+s.Asked.Own)
			}
			continue
		}
		listens = append(listens, text)
	}
	if len(listens) == 0 {
		c.addFinding("ports", doctor.Warn, fmt.Sprintf("%d, %d", s.Master.PublishPort, s.Master.RetPort),
			"the salt-master does not listen on these ports",
			"it is not running, or it runs with a configuration other than "+s.Master.Path, "")
		return
	}
	slices.Sort(listens)
	c.addOK("ports", "", "the salt-master listens on %s", strings.Join(slices.Compact(listens), ", "))
	if len(s.Own.Edge.Interface) == 0 && !slices.ContainsFunc(s.Addresses,
		func(a netip.Addr) bool { return a.IsGlobalUnicast() }) {
		c.addFinding("ports", doctor.Fail, "", "this host has no address except loopback", "minions cannot reach saltclusterd",
			"give the host an address, or set interface in "+s.Asked.Own)
	}
}

// isLoadBalancer says whether a load balancer listens there.
func isLoadBalancer(l doctor.Listener) bool {
	name := strings.ToLower(l.Process)
	return strings.HasPrefix(name, "haproxy ") || strings.HasPrefix(name, "nginx ")
}

// needs says whether saltclusterd is to listen at an address, or the master behind it.
func (s *Site) needs(addr netip.Addr) bool {
	switch own := s.Own.Edge.Interface; {
	case addr.IsUnspecified():
		return true
	case addr.IsLoopback():
		behind := netip.MustParseAddr(localmaster.DropInInterface)
		if bare, ok := s.Master.InterfaceAddr(); ok && bare.IsLoopback() {
			behind = bare
		}
		return addr == behind
	default:
		return len(own) == 0 || slices.ContainsFunc(own, func(text string) bool {
			a, err := netip.ParseAddr(text)
			return err == nil && a.Unmap() == addr.Unmap()
		})
	}
}

// checkUntilRestart tells what does not work between setup and the restart.
func (c *checks) checkUntilRestart() {
	bare, err := c.site.withoutDropIn()
	if err != nil {
		return
	}
	addr, ok := bare.InterfaceAddr()
	if held, _ := c.site.masterListens(); held && ok && !addr.IsUnspecified() && !addr.IsLoopback() {
		c.addFinding("master", doctor.Warn, bare.SetBy("interface"),
			"the salt-master listens on "+bare.Interface+" only: between setup and its restart, the command salt does not work on this host",
			"the command looks for it on loopback; minions are not affected", "do the remaining steps without a pause")
	}
}

// checkOtherPorts looks for strangers on saltclusterd's own ports.
func (c *checks) checkOtherPorts() {
	s := c.site
	for _, p := range []struct {
		port   int
		option string
	}{{s.poolPort(), "cluster_pool_port"}, {portOf(s.Own.Health.Listen), "health_listen"}} {
		for _, l := range s.Listeners {
			if int(l.Addr.Port()) == p.port && !s.isOurs(l) && s.Status == nil {
				c.addFinding("ports", doctor.Fail, l.Addr.String(), cmp.Or(l.Process, "another program")+" listens on a port that saltclusterd needs", "",
					"set "+p.option+" to another port, the same on all nodes")
			}
		}
	}
}

func (c *checks) checkMinions() {
	s := c.site
	if s.isMember() && s.servesMinions() {
		return
	}
	local := 0
	for _, a := range s.Minions {
		if a.IsLoopback() {
			local++
		}
	}
	c.addOK("minions", "",
		"%d connected now; each reconnects and signs in again, as after a restart of the salt-master", len(s.Minions)-local)
	if local > 0 {
		c.addFinding("minions", doctor.Warn, "", fmt.Sprintf("%d of this host connected through loopback", local),
			"such a minion bypasses the cluster: it stays with this one salt-master",
			"set its option master to another address of this host (saltclusterd does not listen on loopback), and restart it")
	}
}

// servesMinions says whether saltclusterd serves minions already.
func (s *Site) servesMinions() bool { return s.Status != nil && len(s.Status.Node.Edges) > 0 }

func (c *checks) checkMember() {
	s := c.site
	switch {
	case s.Status != nil && s.Status.Cluster != nil:
		c.addOK("cluster", "", "this node is a member of %s", s.Status.Cluster.ID)
	case s.Status != nil && s.Status.Removed != "":
		c.addFinding("cluster", doctor.Warn, "", s.Status.Removed, "a removed node does not rejoin until you tell it to",
			"saltclusterctl join PEER, not bootstrap")
	case s.Status == nil && s.Known:
		c.addOK("cluster", s.Own.Paths.StateDir, "this node is a member of a cluster; saltclusterd is not running")
	}
}

// checkMaster judges the configuration as it will be.
func (c *checks) checkMaster(after *localmaster.Config) {
	fine := true
	found := append(localmaster.CheckDropIn(after), localmaster.CheckActors(after, c.site.Own.Events.EveryMaster)...)
	if !c.site.isMember() { // a member's status compares it with what the others have
		found = append(found, localmaster.CheckOwn(localmaster.OwnOf(after, c.isReplicated()))...)
	}
	for _, f := range found {
		level := doctor.Warn
		if f.Fatal {
			level, fine = doctor.Fail, false
		}
		c.addFinding("master", level, f.Option, f.Message, "", f.Fix)
	}
	if fine && countFailed(c.found) == 0 {
		c.addOK("master", "", "with the drop-in, the salt-master listens on %s only and has the master_id %s", after.Interface, after.MasterID)
	}
}

// checkUnusual is what works otherwise behind saltclusterd.
func (c *checks) checkUnusual() {
	m := c.site.Master
	if m.Bool("external_auth") && len(c.site.Own.Edge.AllowClearCommands) == 0 {
		c.addFinding("salt-api", doctor.Warn, "external_auth", "is set, so programs on other hosts may use this master",
			"saltclusterd refuses commands from the network, so it would refuse those of Salt's Python client on another host",
			"for a salt-api on this host: nothing; for that client on another host: set allow_clear_commands in "+c.site.Asked.Own)
	}
}

// checkTransports tells what becomes of the transports that minions use, and of their TLS.
func (c *checks) checkTransports() {
	bare, err := c.site.withoutDropIn()
	if err != nil {
		return
	}
	offered := bare.ForMinions()
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		ports := offered[name]
		where := cmp.Or(bare.SetBy("transport_opts"), bare.SetBy("transport"))
		switch {
		case !slices.Contains(c.site.Own.Edge.Transports, name):
			c.addFinding("transport", doctor.Fail, where, "saltclusterd would not serve minions with "+name,
				"these minions would lose their connection", "move them to another transport first, or see cluster_transports in "+c.site.Asked.Own)
		case ports != [2]int{bare.PublishPort, bare.RetPort}:
			c.addFinding("transport", doctor.Warn, where,
				fmt.Sprintf("minions with %s use the ports %d and %d, which close when the salt-master restarts", name, ports[0], ports[1]),
				"saltclusterd serves all transports on one pair of ports",
				fmt.Sprintf("after the restart, set publish_port: %d and master_port: %d on these minions", bare.PublishPort,
					bare.RetPort))
		case name != "zeromq":
			c.addOK("transport", where, "minions keep %s; the salt-master itself uses zeromq until leave", name)
		}
	}
	if _, zeromq := offered["zeromq"]; zeromq && len(offered) == 1 || len(c.site.Own.Edge.Transports) == 0 {
		return // there, ssl means nothing
	}
	if _, zeromq := offered["zeromq"]; !zeromq && bare.Bool("ssl") && !c.site.Own.Edge.RequireTLS {
		c.addFinding("transport", doctor.Warn, bare.SetBy("ssl"), "the salt-master refuses minions without TLS; saltclusterd would serve them",
			"minions may connect without TLS unless it is required", "set cluster_require_tls: True in "+c.site.Asked.Own)
	}
	if who, err := lookupAccount(bare.User); err == nil { // else checkRoots says it
		c.found = append(c.found, doctor.TLS(bare, who, c.site.Own.Edge.RequireTLS, time.Now())...)
	}
}

// isWritable says whether one may make files in a directory.
func isWritable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
