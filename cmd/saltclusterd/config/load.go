package config

import (
	"errors"
	"io/fs"
	"os"
	"strings"
)

// Load reads path and its drop-ins, resolves the secret and checks everything.
// The error is Findings: one for every mistake in files and values. The Config
// is returned beside it, with what could be understood.
func Load(path string) (*Config, error) {
	return loadWith(path, os.Getenv, os.Hostname)
}

// Read is Load without the checks that only the daemon needs (a secret, a
// cluster_id, ...); a tool that wants to know where the socket is uses it.
func Read(path string) (*Config, error) {
	c, findings := readFiles(path, os.Hostname)
	return c, findings.asError()
}

func loadWith(path string, getenv func(string) string, hostname func() (string, error)) (*Config, error) {
	c, findings := readFiles(path, hostname)
	findings = append(findings, c.resolveSecret(getenv)...)
	findings = append(findings, c.resolveJoinToken(getenv)...)
	findings = append(findings, c.validate()...)
	return c, findings.asError()
}

// readFiles merges the files over the defaults.
func readFiles(path string, hostname func() (string, error)) (*Config, Findings) {
	c := DefaultConfig()
	c.places, c.written = map[string]place{}, map[string]string{}
	files, findings := listFiles(path)
	for _, f := range files {
		findings = append(findings, c.mergeFile(f)...)
	}
	name, err := hostname()
	if err != nil && c.ID == "" {
		findings = append(findings, Finding{File: path, Option: "id",
			Message: "is not set and the host's name is unknown: " + err.Error()})
	}
	c.fillDerived(strings.ToLower(name))
	return &c, findings
}

// Missing finds a file that an option names and that does not exist. The daemon starts all the same: Salt also takes a
// master's configuration that does not exist for an empty one.
func (c *Config) Missing() Findings {
	if c.places["salt_config"].file == "" {
		return nil
	}
	if _, err := os.Stat(c.Salt.Config); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return Findings{c.newFinding("salt_config", c.Salt.Config+" does not exist",
		"without that file, saltclusterd would assume Salt's defaults for every option of the salt-master")}
}

// Files returns the files that were read, in order.
func (c *Config) Files() []string { return c.files }
