package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Master is a stock salt-master.
type Master struct {
	*Process
	Salt
	Addr string // where it listens
	root string
	pki  string // its pki_dir when that is on a share
}

// NewMaster lays out a stock master on the host: its own root directory with etc/salt/master, the demo's states and
// pillar. It listens on addr, which is h.Local for a master behind saltclusterd and h.Addr for a bare one. Settings go
// over the defaults.
func (h *Host) NewMaster(version, addr string, over ...Settings) (*Master, error) {
	path, err := h.lab.saltTool(version, "salt-master")
	if err != nil {
		return nil, err
	}
	m := &Master{Addr: addr, root: h.dir, Salt: Salt{Version: version, ConfigDir: filepath.Join(h.dir, "etc/salt"),
		host: h}}
	if err := m.Configure(over...); err != nil {
		return nil, err
	}
	if err := writeRoots(h.dir); err != nil {
		return nil, err
	}
	if err := m.link(path); err != nil {
		return nil, err
	}
	m.Process = h.NewProcess(Spec{
		Name: "master", Argv: []string{path, "-c", m.ConfigDir, "-l", "warning"}, Env: m.Env(),
		Grace: 60 * time.Second, Ready: m.Ready,
	})
	return m, nil
}

// Command is where the host's salt-master is, whatever its version: what a package would install.
func (m *Master) Command() string { return filepath.Join(m.root, "bin", "salt-master") }

func (m *Master) link(path string) error {
	if err := os.MkdirAll(filepath.Dir(m.Command()), 0o755); err != nil {
		return fmt.Errorf("install salt-master: %w", err)
	}
	if err := os.Remove(m.Command()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("install salt-master: %w", err)
	}
	if err := os.Symlink(path, m.Command()); err != nil {
		return fmt.Errorf("install salt-master: %w", err)
	}
	return nil
}

// ChangeVersion installs another Salt for the next Start, as an upgrade of the package does. Files stay as they are.
func (m *Master) ChangeVersion(version string) error {
	path, err := m.Host().lab.saltTool(version, "salt-master")
	if err != nil {
		return err
	}
	m.Version = version
	m.Process.Argv[0], m.Process.Env = path, m.Env()
	return m.link(path)
}

// Configure writes etc/salt/master anew; a running master has to be restarted to see it.
func (m *Master) Configure(over ...Settings) error {
	base := Settings{
		"user": currentUser(), "root_dir": m.root, "interface": m.Addr, "worker_threads": 3,
		"file_roots":   map[string][]string{"base": {filepath.Join(m.root, "srv/salt")}},
		"pillar_roots": map[string][]string{"base": {filepath.Join(m.root, "srv/pillar")}},
		// As a site with peer publishing has it; publish.publish is part of what must work.
		"peer": map[string][]string{".*": {"test.*", "grains.*"}},
		// Names of accepted keys and host names are not looked up in any DNS.
		"enable_fqdns_grains": false, "enable_gpu_grains": false,
	}
	return writeConfig(filepath.Join(m.ConfigDir, "master"), base, over...)
}

// Host is where the master runs.
func (m *Master) Host() *Host { return m.Process.Host() }

// Ready returns nil when both ports answer and the sockets which the command line tools need exist.
func (m *Master) Ready(ctx context.Context) error {
	for _, port := range []string{"4505", "4506"} {
		if err := m.Host().Accepts(ctx, net.JoinHostPort(m.Addr, port)); err != nil {
			return err
		}
	}
	for _, sock := range []string{"publish_pull.ipc", "master_event_pub.ipc", "master_event_pull.ipc"} {
		if _, err := os.Stat(filepath.Join(m.SockDir(), sock)); err != nil {
			return err
		}
	}
	return nil
}

// MovedTo says that the master has its keys elsewhere now.
func (m *Master) MovedTo(pki string) { m.pki = pki }

// PKIDir, CacheDir and SockDir are where this master keeps keys, caches and sockets.
func (m *Master) PKIDir() string {
	if m.pki != "" {
		return m.pki
	}
	return filepath.Join(m.root, "etc/salt/pki/master")
}

// CacheDir is the master's cachedir.
func (m *Master) CacheDir() string { return filepath.Join(m.root, "var/cache/salt/master") }

// SockDir is the master's sock_dir.
func (m *Master) SockDir() string { return filepath.Join(m.root, "var/run/salt/master") }

// FileRoot is the base environment of the file server.
func (m *Master) FileRoot() string { return filepath.Join(m.root, "srv/salt") }

// Pub publishes fun to tgt with `salt --static` and returns each minion's answer, decoded from JSON. Minions that did
// not answer are missing.
func (m *Master) Pub(ctx context.Context, tgt, fun string, args ...string) (map[string]any, error) {
	out := map[string]any{}
	_, err := m.runJSON(ctx, &out, "salt", append([]string{"--static", tgt, fun}, args...)...)
	return out, err
}

// Keys lists minion ids by state: minions (accepted), minions_pre, minions_rejected, minions_denied.
func (m *Master) Keys(ctx context.Context) (map[string][]string, error) {
	out := map[string][]string{}
	_, err := m.runJSON(ctx, &out, "salt-key", "-L")
	return out, err
}

// AcceptKeys waits until all ids are pending or accepted here and accepts them with `salt-key -a`.
func (m *Master) AcceptKeys(ctx context.Context, within time.Duration, ids ...string) error {
	err := Eventually(ctx, within, "keys of all minions on "+m.Host().Name, func(context.Context) error {
		for _, id := range ids {
			if !m.hasKey("minions_pre", id) && !m.hasKey("minions", id) {
				return fmt.Errorf("no key of %s", id)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return Eventually(ctx, within, "all keys accepted on "+m.Host().Name, func(ctx context.Context) error {
		// Once more when one is pending again: 3008 takes a key out of its place before it has a new one
		// (salt/cache/localfs_key.py:store), and takes it for new when its minion signs in at that moment.
		res, err := m.Run(ctx, "salt-key", "-y", "-A")
		if err != nil {
			return err
		}
		if err := res.Err(); err != nil {
			return err
		}
		for _, id := range ids {
			if !m.hasKey("minions", id) {
				return fmt.Errorf("%s is not accepted", id)
			}
		}
		return nil
	})
}

func (m *Master) hasKey(state, id string) bool {
	_, err := os.Stat(filepath.Join(m.PKIDir(), state, id))
	return err == nil
}

// AnsweredBy returns nil when exactly the ids are keys of got.
func AnsweredBy(got map[string]any, ids ...string) error {
	var missing, extra []string
	for _, id := range ids {
		if _, ok := got[id]; !ok {
			missing = append(missing, id)
		}
	}
	for id := range got {
		if !slices.Contains(ids, id) {
			extra = append(extra, id)
		}
	}
	if len(missing)+len(extra) > 0 {
		return fmt.Errorf("%d of %d answered, missing %v, unexpected %v", len(ids)-len(missing), len(ids), missing, extra)
	}
	return nil
}

// KeyState tells in which of the directories minions, minions_pre, minions_rejected the key is; several are joined by
// "+", none is "".
func (m *Master) KeyState(id string) string {
	var in []string
	for _, state := range []string{"minions", "minions_pre", "minions_rejected"} {
		if m.hasKey(state, id) {
			in = append(in, state)
		}
	}
	return strings.Join(in, "+")
}

// HasIdentity tells whether the master has a key pair.
func (m *Master) HasIdentity() bool {
	_, err := os.Stat(filepath.Join(m.PKIDir(), "master.pem"))
	return err == nil
}
