package localmaster

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// Config is the effective configuration of the stock master. The fields are the options the sidecar leans on; every
// other one is reached by name. A Config is immutable after LoadConfig.
type Config struct {
	Path    string // the main file
	Version Version

	ID       string // opts["id"], "<hostname>_master" unless configured
	User     string
	RootDir  string
	PkiDir   string
	CacheDir string
	SockDir  string
	LogFile  string

	Interface   string
	PublishPort int
	RetPort     int
	Transport   string
	IPCMode     string
	MasterID    string // "" when unset

	Warnings []string // what Salt itself would log before it continues: broken include files and the like

	opts    map[string]any
	setBy   map[string]string
	globbed map[string]bool
}

// LoadConfig reads the master's configuration as Salt of that version does: path, default_include, include, root_dir
// and defaults (salt.config.master_config). A missing file means defaults, as in Salt; a broken main file is an error.
func LoadConfig(path string, ver Version) (*Config, error) { return LoadConfigAfter(path, ver, nil) }

// LoadConfigAfter is LoadConfig as it would be after the changes; no file is touched.
func LoadConfigAfter(path string, ver Version, changes Changes) (*Config, error) {
	defaults, err := defaultOpts(ver)
	if err != nil {
		return nil, err
	}
	r := &confReader{setBy: map[string]string{}, changes: changes}
	overrides, err := r.main(path)
	if err != nil {
		return nil, fmt.Errorf("master configuration: %w", err)
	}
	include := overrides["include"]
	globs, ok := overrides["default_include"]
	if !ok {
		globs = defaults["default_include"]
	}
	for _, globs := range []any{globs, include} {
		more, err := r.includeFiles(globs, path, 0)
		if err != nil {
			return nil, fmt.Errorf("master configuration: %w", err)
		}
		maps.Copy(overrides, more)
	}
	a := &applier{opts: defaults, overrides: overrides, ver: ver, r: r}
	if err := a.applyAll(); err != nil {
		return nil, fmt.Errorf("master configuration %s: %w", path, err)
	}
	c := &Config{Path: path, Version: ver, opts: a.opts, setBy: r.setBy, globbed: a.globbed, Warnings: r.warnings}
	return c, c.setFields()
}

// setFields sets the fields from the options.
func (c *Config) setFields() error {
	for name, field := range map[string]*string{
		"id": &c.ID, "user": &c.User, "root_dir": &c.RootDir, "pki_dir": &c.PkiDir, "cachedir": &c.CacheDir,
		"sock_dir": &c.SockDir, "log_file": &c.LogFile, "interface": &c.Interface, "transport": &c.Transport,
		"ipc_mode": &c.IPCMode,
	} {
		v, ok := c.opts[name].(string)
		if !ok && !(c.opts[name] == nil && mayBeNone[name]) {
			return fmt.Errorf("master configuration: option %s must be a text%s", name, c.setByNote(name))
		}
		*field = v
	}
	for name, field := range map[string]*int{"publish_port": &c.PublishPort, "ret_port": &c.RetPort} {
		port, err := portNumber(c.opts[name])
		if err != nil {
			return fmt.Errorf("master configuration: option %s%s: %w", name, c.setByNote(name), err)
		}
		*field = port
	}
	if id := c.opts["master_id"]; id != nil {
		c.MasterID = pyStr(id)
	}
	return nil
}

// mayBeNone are options without which a master runs when a line names them and says nothing.
var mayBeNone = map[string]bool{"log_file": true, "ipc_mode": true}

// setByNote names the file that set an option, for messages.
func (c *Config) setByNote(name string) string {
	if file := c.setBy[name]; file != "" {
		return " (set in " + file + ")"
	}
	return ""
}

// portNumber reads a port; Salt formats whatever it finds into an address, so that a quoted number works too.
func portNumber(v any) (int, error) {
	n, err := strconv.Atoi(pyStr(v))
	if err != nil || n < 1 || n > 65535 {
		return 0, fmt.Errorf("%q is not a port number", pyStr(v))
	}
	return n, nil
}

// Raw returns an option as Salt would hold it (nil, bool, int64, float64, string, []any, map[string]any). The value
// must not be changed.
func (c *Config) Raw(name string) (any, bool) { v, ok := c.opts[name]; return v, ok }

// Bool returns an option's truth as Python's bool() sees it; an absent one is false.
func (c *Config) Bool(name string) bool { return pyTrue(c.opts[name]) }

// Workers is how many processes of the master take what minions ask: worker_threads, or those of the pool for whatever
// no other pool takes.
func (c *Config) Workers() int {
	if c.Version.Major >= 3008 {
		pools, _ := c.opts["worker_pools"].(map[string]any)
		for _, pool := range pools {
			p, _ := pool.(map[string]any)
			n, ok := p["worker_count"].(int64)
			if commands, _ := p["commands"].([]any); ok && slices.Contains(commands, any("*")) {
				return int(n)
			}
		}
	}
	return int(c.Int("worker_threads"))
}

// Int returns an integer option, 0 when it is absent or no number.
func (c *Config) Int(name string) int64 {
	switch v := c.opts[name].(type) {
	case int64:
		return v
	case float64:
		return int64(v)
	case string:
		n, _ := strconv.ParseInt(v, 10, 64)
		return n
	}
	return 0
}

// Text returns a string option, "" when it is absent or not a string.
func (c *Config) Text(name string) string { s, _ := c.opts[name].(string); return s }

// Strings returns a list option (a single string counts as a list of one).
func (c *Config) Strings(name string) []string { return stringList(c.opts[name]) }

// The options that name directories by environment.
const (
	FileRoots   = "file_roots"
	PillarRoots = "pillar_roots"
)

// Roots reads FileRoots or PillarRoots: the directories of each environment, in their order and as they are written; an
// entry that is not text is empty.
func (c *Config) Roots(option string) map[string][]string {
	envs, _ := c.opts[option].(map[string]any)
	out := make(map[string][]string, len(envs))
	for env, v := range envs {
		list, _ := v.([]any)
		dirs := make([]string, len(list))
		for i := range list {
			dirs[i], _ = list[i].(string)
		}
		out[env] = dirs
	}
	return out
}

// Names lists all options in order.
func (c *Config) Names() []string { return slices.Sorted(maps.Keys(c.opts)) }

// SetBy returns the file that set the option last, "" when it has its default.
func (c *Config) SetBy(name string) string { return c.setBy[name] }

// Globbed says whether file_roots or pillar_roots was written with wildcards. They have been resolved here in
// alphabetical order; Salt takes them as its file system lists them.
func (c *Config) Globbed(name string) bool { return c.globbed[name] }

// Host is the address at which local clients reach the master: a wildcard interface becomes loopback, as in
// salt.config.client_config.
func (c *Config) Host() string {
	switch c.Interface {
	case "0.0.0.0":
		return "127.0.0.1"
	case "::":
		return "::1"
	}
	return c.Interface
}

// ReqAddr is host:port of the request socket.
func (c *Config) ReqAddr() string { return net.JoinHostPort(c.Host(), strconv.Itoa(c.RetPort)) }

// PubAddr is host:port of the publish socket.
func (c *Config) PubAddr() string { return net.JoinHostPort(c.Host(), strconv.Itoa(c.PublishPort)) }

// InterfaceAddr returns the configured interface when it is an IP address.
func (c *Config) InterfaceAddr() (netip.Addr, bool) {
	a, err := netip.ParseAddr(c.Interface)
	return a, err == nil
}
