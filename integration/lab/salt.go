package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Versions of Salt which the lab has virtualenvs of: the pinned ones, or those that SALTCLUSTER_VERSIONS names.
var Versions = versions(os.Getenv("SALTCLUSTER_VERSIONS"))

func versions(named string) []string {
	if named == "" {
		return []string{"3006.28", "3007.15", "3008.3"}
	}
	return strings.Fields(named)
}

// Older releases of the same lines, of which there are virtualenvs where integration/setup/older has run.
var Older = []string{"3006.16", "3007.8", "3008.1"}

// OldMinion is a release whose minions have payload version 2, where "integration/setup/older 3006.9" has run.
const OldMinion = "3006.9"

// DefaultVenvs is where "make setup" puts the virtualenvs.
func DefaultVenvs() string {
	if dir := os.Getenv("SALTCLUSTER_VENVS"); dir != "" {
		return dir
	}
	cache := os.Getenv("SALTCLUSTER_CACHE")
	if cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			base = os.TempDir()
		}
		cache = filepath.Join(base, "saltclusterd")
	}
	return filepath.Join(cache, "venvs")
}

// Settings are options of a Salt daemon, as in its configuration file.
type Settings map[string]any

// saltBin is where the commands of a version are.
func (l *Lab) saltBin(version string) string {
	dir := l.opts.Venvs
	switch {
	case version == OldMinion:
		dir = filepath.Join(filepath.Dir(dir), "minions")
	case slices.Contains(Older, version):
		dir = filepath.Join(filepath.Dir(dir), "older")
	}
	return filepath.Join(dir, version, "bin")
}

// saltTool returns the path of a Salt command of a version.
func (l *Lab) saltTool(version, name string) (string, error) {
	path := filepath.Join(l.saltBin(version), name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("Salt %s is not installed, run 'make setup' (of older releases, integration/setup/older): %w",
			version, err)
	}
	return path, nil
}

// writeConfig writes a Salt configuration file: base settings with the given ones over them.
func writeConfig(path string, base Settings, over ...Settings) error {
	all := Settings{}
	for _, s := range append([]Settings{base}, over...) {
		for k, v := range s {
			all[k] = v
		}
	}
	raw, err := yaml.Marshal(map[string]any(all))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func currentUser() string {
	u, err := user.Current()
	if err != nil {
		return "root"
	}
	return u.Username
}

// Salt is something with a Salt configuration on a host: the command line tools of its version run against it.
type Salt struct {
	Version   string
	ConfigDir string
	host      *Host
}

// Run runs one of Salt's commands (salt, salt-key, salt-run, salt-call, salt-cp) with this configuration.
func (s *Salt) Run(ctx context.Context, name string, args ...string) (Result, error) {
	path, err := s.host.lab.saltTool(s.Version, name)
	if err != nil {
		return Result{}, err
	}
	argv := append([]string{path}, args...)
	if c := s.host.lab.commandsOf(s, name); c != nil {
		if conn := c.connect(); conn != nil {
			return c.exec(ctx, conn, argv)
		}
	}
	return s.host.Exec(ctx, s.Env(), argv...)
}

// Env makes Salt's commands find this configuration.
func (s *Salt) Env() []string {
	bin := s.host.lab.saltBin(s.Version)
	return []string{"SALT_CONFIG_DIR=" + s.ConfigDir,
		"PATH=" + bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
}

// runJSON runs a command with JSON output and decodes the one document it prints into v.
func (s *Salt) runJSON(ctx context.Context, v any, name string, args ...string) (Result, error) {
	res, err := s.Run(ctx, name, append([]string{"--out=json", "--log-level=quiet"}, args...)...)
	if err != nil {
		return res, err
	}
	if err := decodeOne(res.Stdout, v); err != nil {
		return res, fmt.Errorf("%s %s: exit code %d, output is not JSON: %w\n%s", name, strings.Join(args, " "), res.Code,
			err, res.Output())
	}
	return res, nil
}

func decodeOne(text string, v any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}
