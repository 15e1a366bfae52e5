package localmaster

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Finding is one thing about the master's configuration that an operator should know.
type Finding struct {
	Option  string // the option concerned
	Fatal   bool   // the cluster cannot work like this
	Message string // a sentence: what is wrong
	Fix     string // a sentence: what to type
}

// CheckDropIn lists everything in the effective configuration that must not stay like this behind the sidecar.
func CheckDropIn(cfg *Config) []Finding {
	c := &checker{cfg: cfg}
	c.checkAddress()
	c.checkIdentity()
	c.checkPresence()
	c.keyStore()
	c.checkStores()
	c.checkTransport()
	c.checkUnreadable()
	return c.found
}

type checker struct {
	cfg    *Config
	found  []Finding
	reader *boundedReader
}

func (c *checker) addFinding(fatal bool, option, message, fix string) {
	if by := c.cfg.SetBy(option); by != "" {
		message += " It is set in " + by + "."
	}
	c.found = append(c.found, Finding{Option: option, Fatal: fatal, Message: message, Fix: fix})
}

// dropIn is the advice where the drop-in would have set the option right.
func (c *checker) dropIn(option string) string {
	path, err := c.cfg.DropInPath()
	if err != nil {
		return "Put 'default_include: master.d/*.conf' into " + c.cfg.Path + ", then run 'saltclusterctl setup' again."
	}
	if by := c.cfg.SetBy(option); by != "" && filepath.Clean(by) != filepath.Clean(path) {
		return fmt.Sprintf("Remove the line '%s: ...' from %s and restart the salt-master.", option, by)
	}
	return "Run 'saltclusterctl setup', which writes " + path + ", then restart the salt-master."
}

func (c *checker) checkAddress() {
	addr, ok := c.cfg.InterfaceAddr()
	if !ok || !addr.IsLoopback() {
		c.addFinding(true, "interface", fmt.Sprintf("The salt-master binds %s, where saltclusterd must listen for the minions.",
			c.cfg.Interface),
			c.dropIn("interface"))
	}
	if c.cfg.PublishPort == c.cfg.RetPort {
		c.addFinding(true, "ret_port", "publish_port and ret_port are the same.", "Give ret_port another number, 4506 by default.")
	}
	if c.cfg.IPCMode == "tcp" {
		c.addFinding(false, "ipc_mode",
			"The master's event sockets are TCP ports: every user of this host may read and fire events.",
			"Remove 'ipc_mode: tcp' from the master's configuration unless the platform needs it.")
	}
}

func (c *checker) checkIdentity() {
	if c.cfg.MasterID == "" {
		c.addFinding(true, "master_id", "Returns cannot be brought to the master that published the job: master_id is not set.",
			c.dropIn("master_id"))
	}
	if v, ok := c.cfg.Raw("cluster_id"); ok && v != nil {
		c.addFinding(true, "cluster_id", "The salt-master would run its own native cluster beside this one.",
			"Run 'saltclusterctl setup', which ends that in its drop-in and keeps the key and the minion keys, then restart the salt-master.")
	}
	if c.cfg.Bool("key_pass") {
		c.addFinding(true, "key_pass",
			"The cluster's master.pem has no passphrase, and a salt-master that expects one does not start with it.",
			"Remove key_pass from the master's configuration.")
	}
	if n := c.cfg.Int("max_minions"); n > 0 {
		c.addFinding(false, "max_minions", "max_minions counts the connections of each master separately.",
			"Remove max_minions, or set it to 0.")
	}
	if c.cfg.Int("auth_mode") > 1 {
		c.addFinding(true, "auth_mode", "auth_mode above 1 does not work with any supported Salt version.",
			"Remove auth_mode from the master's configuration.")
	}
}

// checkPresence reports what believes in this master's view of who is connected.
func (c *checker) checkPresence() {
	if c.cfg.Bool("presence_events") {
		c.addFinding(false, "presence_events",
			"The salt-master would fire salt/presence events for the connections that it has itself, but minions connect to "+
				"saltclusterd.", c.dropIn("presence_events"))
	}
	if engines, ok := c.cfg.Raw("engines"); ok && namesModule(engines, "stalekey") {
		c.addFinding(true, "engines",
			"The engine stalekey deletes the keys of minions that are not connected to this master: behind a load "+
				"balancer, eventually all of them.", "Remove stalekey from engines, restart the salt-master, and use 'saltclusterctl minions list --state lost'.")
	}
}

// namesModule says whether an option that lists modules, by name or with their settings, has that one.
func namesModule(v any, module string) bool {
	switch v := v.(type) {
	case string:
		return v == module
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return namesModule(e, module) })
	case map[string]any:
		for name, settings := range v {
			if s, _ := settings.(map[string]any); name == module || s["engine_module"] == module {
				return true
			}
		}
	}
	return false
}

func (c *checker) keyStore() {
	if c.cfg.Version.Major < 3008 {
		return
	}
	if d := c.cfg.Text("keys.cache_driver"); d != "localfs_key" && d != "mmap_key" {
		c.addFinding(true, "keys.cache_driver",
			fmt.Sprintf("Minion keys are kept by the driver %q, which saltclusterd cannot read: decisions about keys do not reach this master, and its own do not reach the cluster.", d), c.dropIn("keys.cache_driver"))
	}
}

// checkStores reports stores of 3008 in files of the host that the cluster does not replicate. A database may be the
// same for all masters.
func (c *checker) checkStores() {
	const mmap, localfs = "mmap_cache", "localfs"
	if c.cfg.Version.Major < 3008 {
		return
	}
	data := c.cfg.Text("cache")
	alone := func(option, what string) {
		value := c.cfg.Text(option)
		c.addFinding(false, option, fmt.Sprintf("With %s: %s %s.", option, value, what), fmt.Sprintf(
			"Remove '%s: %s' from the configuration of every master and restart the salt-masters: Salt's default is replicated.",
			option, value))
	}
	if data == mmap {
		alone("cache", "each master knows only the grains and pillars of minions whose pillars it has rendered, so targets by grains "+
			"and pillar differ from master to master; and it accepts no eauth token of another master")
	}
	if c.cfg.Text("pillar.cache_driver") == mmap && data != mmap {
		alone("pillar.cache_driver", "each master knows only the pillars that it has rendered, so targets by pillar differ from master to master")
	}
	if c.cfg.Text("eauth_tokens.cache_driver") == mmap && data != mmap {
		alone("eauth_tokens.cache_driver", "each master accepts only the eauth tokens that it has issued")
	}
	if c.cfg.Text("master_job_cache") == "salt_cache" && (data == mmap || data == localfs) {
		alone("master_job_cache", "each master knows only the results of its own jobs")
	}
}

func (c *checker) checkTransport() {
	if c.cfg.Transport != "zeromq" {
		c.addFinding(true, "transport", fmt.Sprintf("saltclusterd speaks zeromq with the salt-master, which uses %s.",
			c.cfg.Transport), c.dropIn("transport")+" Minions keep their transport.")
	}
	if c.cfg.Bool("transport_opts") {
		fix := c.dropIn("transport_opts")
		if path, err := c.cfg.DropInPath(); err == nil && filepath.Clean(c.cfg.SetBy("transport_opts")) == filepath.Clean(path) {
			// Salt merges the maps of included files (salt.utils.dictupdate), so that an empty one takes nothing away.
			fix = "Move transport_opts from the other files in " + filepath.Dir(path) + " to " + c.cfg.Path +
				", where the drop-in can take it away, then restart the salt-master."
		}
		c.addFinding(true, "transport_opts", "The salt-master offers other transports, by which minions could bypass saltclusterd.",
			fix)
	}
}

// ForMinions lists the transports that a master offers to minions, with the ports of each: those of transport_opts, and
// that of the option transport unless it is among them (salt.utils.channel.iter_transport_opts).
func (c *Config) ForMinions() map[string][2]int {
	out := map[string][2]int{}
	more, _ := c.opts["transport_opts"].(map[string]any)
	for name, v := range more {
		own, _ := v.(map[string]any)
		ports := [2]int{c.PublishPort, c.RetPort}
		for i, option := range []string{"publish_port", "ret_port"} {
			if port, err := portNumber(own[option]); err == nil {
				ports[i] = port
			}
		}
		out[name] = ports
	}
	if _, has := out[c.Transport]; !has {
		out[c.Transport] = [2]int{c.PublishPort, c.RetPort}
	}
	return out
}

// checkUnreadable reports what made the configuration read here differ, or maybe differ, from the master's.
func (c *checker) checkUnreadable() {
	for _, w := range c.cfg.Warnings {
		c.found = append(c.found, Finding{Option: "include",
			Message: "The salt-master ignores a configuration file: " + w + ".",
			Fix:     "Correct the file at the line named, then restart the salt-master."})
	}
	for _, name := range []string{"user", "interface", "master_id", "id"} {
		if strings.HasPrefix(c.cfg.Text(name), "sdb://") {
			c.addFinding(true, name, "The option is read through sdb, which only the salt-master can do.",
				"Write the value itself into the master's configuration.")
		}
	}
}
