package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/integration/straced"
	"saltclusterd/sidecar/adminapi"
)

// Daemon is saltclusterd beside a stock master.
type Daemon struct {
	*Process
	ConfigPath string
	Socket     string // its admin socket
	StateDir   string
	host       *Host
	master     *Master // nil beside a witness
}

// Secret is what the lab's nodes prove their right to join with.
const Secret = "lab-secret-4f0c1d8e9a7b6352"

// NewDaemon lays out saltclusterd on its master's host, on the host's own address. It also writes the master's
// drop-in (etc/salt/master.d/saltclusterd.conf). Settings go over the defaults; a nil value removes an option.
func (m *Master) NewDaemon(over ...Settings) (*Daemon, error) {
	h := m.Host()
	bin := filepath.Join(h.lab.opts.Bin, "saltclusterd")
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("saltclusterd is not built, run 'make build': %w", err)
	}
	d := m.daemon(bin, filepath.Join(h.dir, "run/admin.sock"))
	for _, dir := range []string{filepath.Dir(d.Socket), d.StateDir, filepath.Join(m.ConfigDir, "saltclusterd.d")} {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return nil, fmt.Errorf("lay out saltclusterd: %w", err)
		}
	}
	dropIn := Settings{"master_id": h.Name, "keys.cache_driver": "localfs_key"}
	if err := writeConfig(filepath.Join(m.ConfigDir, "master.d/saltclusterd.conf"), dropIn); err != nil {
		return nil, err
	}
	if err := d.Configure(over...); err != nil {
		return nil, err
	}
	return d, nil
}

func (m *Master) daemon(bin, socket string) *Daemon {
	h := m.Host()
	d := &Daemon{
		ConfigPath: filepath.Join(m.ConfigDir, "saltclusterd"), Socket: socket,
		StateDir: filepath.Join(h.dir, "var/lib/saltclusterd"),
		host:     h, master: m,
	}
	d.Process = h.NewProcess(Spec{
		Name: "saltclusterd", Argv: []string{bin, "--config", d.ConfigPath}, Grace: 60 * time.Second, Ready: d.listening,
		Notify: true, Env: []string{"SALTCLUSTER_SERVICE_MANAGER=systemd"},
	})
	return d
}

// NewSetup is saltclusterd as `saltclusterctl setup` configures it beside this master, which it writes nothing for.
func (m *Master) NewSetup() *Daemon {
	h := m.Host()
	return m.daemon(filepath.Join(h.lab.opts.Bin, "saltclusterd"), filepath.Join(h.dir, "run/saltclusterd/admin.sock"))
}

// Configure writes the configuration file anew.
func (d *Daemon) Configure(over ...Settings) error {
	m, h := d.master, d.master.Host()
	all := Settings{
		"id": h.Name, "interface": h.Addr, "cluster_id": "lab", "cluster_secret": Secret, "cluster_advertise": h.Addr,
		"cluster_interface": h.Addr, "state_dir": d.StateDir, "run_dir": filepath.Dir(d.Socket), "admin_socket": d.Socket,
		"salt_config": filepath.Join(m.ConfigDir, "master"), "salt_master_command": m.Command(),
		"health_listen": net.JoinHostPort(h.Addr, "4580"), "log_level": "info", "drain_announce": "0s", "drain_time": "1s",
	}
	for _, s := range over {
		for k, v := range s {
			if all[k] = v; v == nil {
				delete(all, k)
			}
		}
	}
	raw, err := yaml.Marshal(map[string]any(all))
	if err != nil {
		return fmt.Errorf("write %s: %w", d.ConfigPath, err)
	}
	if err := os.WriteFile(d.ConfigPath, raw, 0o600); err != nil { // it holds the secret
		return fmt.Errorf("write %s: %w", d.ConfigPath, err)
	}
	return nil
}

// Watch has strace write down what the next lives of saltclusterd touch (package straced), at the end of a file; an
// empty name ends that.
func (d *Daemon) Watch(file string) error {
	argv := d.Spec.Argv
	if i := slices.Index(argv, d.bin()); i > 0 {
		argv = argv[i:]
	}
	d.Spec.Argv = argv
	if file == "" {
		return nil
	}
	tracer, err := exec.LookPath("strace")
	if err != nil {
		return fmt.Errorf("watch saltclusterd, run 'make setup': %w", err)
	}
	d.Spec.Argv = slices.Concat([]string{tracer}, straced.Options(file), argv)
	return nil
}

func (d *Daemon) bin() string { return filepath.Join(d.host.lab.opts.Bin, "saltclusterd") }

// listening: the admin socket is there. Minions are served only after bootstrap or join.
func (d *Daemon) listening(context.Context) error {
	if _, err := os.Stat(d.Socket); err != nil {
		return errors.New("no admin socket yet")
	}
	return nil
}

// Env makes saltclusterctl find this daemon, print lines that tests find whole, and name systemd's commands.
func (d *Daemon) Env() []string {
	return []string{"SALTCLUSTERD_SOCKET=" + d.Socket, "SALTCLUSTERD_CONFIG=" + d.ConfigPath, "COLUMNS=1000",
		"SALTCLUSTER_SERVICE_MANAGER=systemd"}
}

// Ctl runs saltclusterctl against this daemon.
func (d *Daemon) Ctl(ctx context.Context, args ...string) (Result, error) {
	h := d.host
	bin := filepath.Join(h.lab.opts.Bin, "saltclusterctl")
	return h.Exec(ctx, d.Env(), append([]string{bin}, args...)...)
}

// CtlJSON runs saltclusterctl with JSON output and decodes it into v.
func (d *Daemon) CtlJSON(ctx context.Context, v any, args ...string) error {
	res, err := d.Ctl(ctx, append(args, "--out", "json")...)
	if err != nil {
		return err
	}
	if err := res.Err(); err != nil {
		return err
	}
	return decodeOne(res.Stdout, v)
}

// Bootstrap gives birth to a cluster on this node, with its master's identity.
func (d *Daemon) Bootstrap(ctx context.Context) error { return d.must(ctx, "bootstrap") }

// Join makes this node a member of the cluster which peer belongs to. It returns when the cluster's identity is
// installed, which is when the local master may be started (or has to be started again).
func (d *Daemon) Join(ctx context.Context, peer *Daemon) error {
	return d.must(ctx, "join", peer.host.Addr, "--wait=false")
}

// Members as this node sees them.
func (d *Daemon) Members(ctx context.Context) (adminapi.Members, error) {
	var m adminapi.Members
	err := d.CtlJSON(ctx, &m, "members")
	return m, err
}

func (d *Daemon) must(ctx context.Context, args ...string) error {
	res, err := d.Ctl(ctx, args...)
	if err != nil {
		return err
	}
	return res.Err()
}

// Serving waits until the node accepts minions on both ports.
func (d *Daemon) Serving(ctx context.Context, within time.Duration) error {
	h := d.host
	return Eventually(ctx, within, h.Name+" to serve minions", func(ctx context.Context) error {
		return errors.Join(h.Accepts(ctx, net.JoinHostPort(h.Addr, "4505")), h.Accepts(ctx, net.JoinHostPort(h.Addr, "4506")))
	})
}
