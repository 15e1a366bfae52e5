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
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// checks looks at a Site, one line for each look.
type checks struct {
	site          *Site
	node, cluster string
	found         []doctor.Finding
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
		c.addFinding("salt", doctor.Warn, "", w, "the salt-master leaves that file out", "correct the file")
	}
	if dir := filepath.Dir(s.Master.Path); s.UID != 0 && !isWritable(dir) {
		c.addFinding("salt", doctor.Fail, dir, "you may not write there", "", "run it as root")
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
			"neither the salt-master nor saltclusterd starts as that user", "correct the option user")
		return
	}
	c.found = append(c.found, doctor.Roots(who, rootDirs(s.Master), s.Own.Roots.Ignore)...)
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
		c.addFinding("config", doctor.Fail, s.Asked.Own, f.String(), "saltclusterd does not start with it",
			"saltclusterctl config check")
	}
	if s.Own.Cluster.Witness {
		c.addFinding("config", doctor.Fail, s.OwnSource["cluster_witness"], "this node is a witness: it has no salt-master", "",
			"remove cluster_witness, or do not adopt this host's master")
	}
	for _, o := range []struct{ name, asked, is string }{{"id", s.Asked.Node, s.Own.ID},
		{"cluster_id", s.Asked.ClusterID, s.Own.Cluster.ID}} {
		if at, set := s.OwnSource[o.name]; set && o.asked != "" && o.asked != o.is {
			c.addFinding("config", doctor.Fail, at, fmt.Sprintf("%s is %s, and not %s", o.name, o.is, o.asked), "",
				"change it there, or leave the flag out")
		}
	}
	if _, err := node.ParseID(c.node); err != nil {
		c.addFinding("config", doctor.Fail, "", err.Error(), "", "--node m1")
	}
	if len(c.found) == before {
		c.addOK("config", s.Asked.Own, "this node is %s of the cluster %s", c.node, c.cluster)
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
		c.addFinding("identity", doctor.Fail, path, "is not there: Salt's own cluster has never run here",
			"it is not known what its minions trust",
			"let it start once, or remove cluster_id and the other cluster_ options from "+s.native.where)
	case s.native != nil && s.KeyErr != nil && !errors.Is(s.KeyErr, fs.ErrPermission):
		c.addFinding("identity", doctor.Fail, path, s.KeyErr.Error(), "no minion could trust the cluster",
			"a key with a passphrase (cluster_key_pass) has to be written without one, because the cluster's has none")
	case errors.Is(s.KeyErr, fs.ErrPermission):
		c.addFinding("identity", doctor.Fail, path, "you may not read it", "", "run it as root")
	case errors.Is(s.KeyErr, fs.ErrNotExist) && s.Master.Text("keys.cache_driver") == "mmap_key":
		c.addOK("identity", s.Master.PkiDir, "in the master's own key store (mmap_key), %s", becomes)
	case errors.Is(s.KeyErr, fs.ErrNotExist):
		c.addFinding("identity", doctor.Warn, path, "is not there: this salt-master has never run",
			"it is made when the cluster is founded; minions will trust it from then on", "")
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
	end := "; they stay as they are"
	switch {
	case s.native != nil && s.KeysDir != s.Master.PkiDir:
		end = "; they are copied to " + s.Master.PkiDir
	case s.isJoining():
		end = ""
	}
	if s.keysHidden {
		c.addFinding("keys", doctor.Skip, s.KeysDir, "you may not read the minion keys", "", "run it as root")
	} else {
		c.addOK("keys", s.KeysDir, "minion keys: %s%s", strings.Join(parts, ", "), end)
	}
	if bare, err := s.withoutDropIn(); err == nil && bare.Version.Major >= 3008 {
		if d := bare.Text("keys.cache_driver"); d != "localfs_key" && d != "mmap_key" {
			c.addFinding("keys", doctor.Fail, "keys.cache_driver", "the salt-master has its keys in "+d,
				"saltclusterd cannot read them, and would found a cluster without minions",
				"move them to files first (keys.cache_driver: localfs_key), with salt-key of both")
		}
	}
	if len(s.Markers) > 0 && !s.isMember() {
		c.addFinding("keys", doctor.Warn, s.Markers[0], "this master belonged to a cluster",
			"bootstrap would refuse, because that cluster may live",
			"saltclusterctl join one of its members instead; if there is none any more, remove the file")
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
		if name := strings.ToLower(l.Process); strings.HasPrefix(name, "haproxy ") || strings.HasPrefix(name, "nginx ") {
			c.addFinding("ports", doctor.Fail, l.Addr.String(), l.Process+" listens where saltclusterd must",
				"minions would not reach it",
				"let the load balancer listen on an address of its own (saltclusterctl haproxy --fragment --bind ADDRESS)")
			continue
		}
		listens = append(listens, text)
	}
	if len(listens) == 0 {
		c.addFinding("ports", doctor.Warn, fmt.Sprintf("%d, %d", s.Master.PublishPort, s.Master.RetPort),
			"the salt-master does not listen", "it does not run, or not with "+s.Master.Path, "")
		return
	}
	slices.Sort(listens)
	c.addOK("ports", "", "the salt-master listens on %s", strings.Join(slices.Compact(listens), ", "))
	if len(s.Own.Edge.Interface) == 0 && !slices.ContainsFunc(s.Addresses,
		func(a netip.Addr) bool { return a.IsGlobalUnicast() }) {
		c.addFinding("ports", doctor.Fail, "", "this host has no address but loopback", "minions cannot reach saltclusterd",
			"give it one, or set interface in "+s.Asked.Own)
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
			"listens on "+bare.Interface+" only: from setup until it is restarted salt on this host looks for it on loopback, and finds nothing",
			"minions notice nothing of that", "continue with the restart without a pause")
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
				c.addFinding("ports", doctor.Fail, l.Addr.String(), strings.TrimSpace(l.Process+" listens where saltclusterd would"), "",
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
		"%d connected now; each will connect anew once, and sign in once, as when a salt-master is restarted", len(s.Minions)-local)
	if local > 0 {
		c.addFinding("minions", doctor.Warn, "", fmt.Sprintf("%d of this host connected by way of loopback", local),
			"such a minion stays with this one salt-master, past the cluster",
			"give it an address of this host in its option master (saltclusterd listens on all but loopback), and restart it")
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
		c.addFinding("cluster", doctor.Warn, "", s.Status.Removed, "it does not come back on its own",
			"saltclusterctl join PEER instead of bootstrap")
	case s.Status == nil && s.Known:
		c.addOK("cluster", s.Own.Paths.StateDir, "this node is a member of a cluster; saltclusterd does not run")
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
		c.addOK("master", "", "with the drop-in it listens on %s only, and has master_id %s", after.Interface, after.MasterID)
	}
}

// checkUnusual is what works otherwise behind saltclusterd.
func (c *checks) checkUnusual() {
	m := c.site.Master
	if m.Bool("external_auth") && len(c.site.Own.Edge.AllowClearCommands) == 0 {
		c.addFinding("salt-api", doctor.Warn, "external_auth", "is set, so there may be a salt-api",
			"on another host it would be refused: saltclusterd takes no commands from the network",
			"on this host nothing is to be done; else allow_clear_commands in "+c.site.Asked.Own)
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
				"they would lose their connection", "move them to another transport first, or see cluster_transports in "+c.site.Asked.Own)
		case ports != [2]int{bare.PublishPort, bare.RetPort}:
			c.addFinding("transport", doctor.Warn, where,
				fmt.Sprintf("minions with %s use the ports %d and %d, which end with the restart", name, ports[0], ports[1]),
				"all transports are on one pair of ports then",
				fmt.Sprintf("set publish_port: %d and master_port: %d on them when the salt-master has been restarted", bare.PublishPort,
					bare.RetPort))
		case name != "zeromq":
			c.addOK("transport", where, "minions keep %s; the salt-master itself moves to zeromq, and back with leave", name)
		}
	}
	if _, zeromq := offered["zeromq"]; zeromq && len(offered) == 1 || len(c.site.Own.Edge.Transports) == 0 {
		return // there, ssl means nothing
	}
	if who, err := lookupAccount(bare.User); err == nil { // else checkRoots says it
		c.found = append(c.found, doctor.TLS(bare, who, time.Now())...)
	}
}

// isWritable says whether one may make files in a directory.
func isWritable(dir string) bool { return unix.Access(dir, unix.W_OK) == nil }
